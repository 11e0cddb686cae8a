// The packets of the chosen flow and range, with verdict and evidence of each, as a list and as a ladder.
//
// An item of the list is the row of a packet, or ~row for the pause before that packet.
const narrow = matchMedia("(max-width: 760px)"); // packets.css
const LISTED = { row: () => (narrow.matches ? 32 : 24), head: 28, most: 22 }; // px, px, rows
const PAUSE_LEAST = 0.2, PAUSE_SHARE = 0.05, PAUSE_FACTOR = 10; // seconds, of the range, of the median time between packets
const SAMPLED = 4096; // times between packets of which the median is taken
const PAGE_STEP = 25; // packets
const TABS = ["packets", "ladder"];
const SHAPES = { fast_retransmission: "◆", timeout_retransmission: "✕", probe_retransmission: "△", retransmission: "◇" };
const PHRASES = {
  fast_retransmission: "fast retransmission", timeout_retransmission: "retransmitted by timeout", probe_retransmission: "tail loss probe",
  retransmission: "retransmitted, cause unknown", suspected_timeout: "suspected timeout", duplicate_ack: "duplicate ACK",
  out_of_order: "out of order", ambiguous: "retransmitted or out of order", gap: "follows a gap", sack_gap: "SACK of data not captured",
  acked_unseen_segment: "ACK of data not captured", keep_alive_ack: "ACK of a keep-alive", ack_out_of_range: "ACK out of range",
};
const QUIET = new Set(["duplicate_ack", "keep_alive", "keep_alive_ack", "window_probe"]);
const EVIDENCE = { dsack: "DSACK", timestamps: "TCP timestamps", ip_id: "IPv4 IDs", acks: "ACKs", acknowledged: "an earlier ACK", signature: "equal headers", time: "time" };
const listed = { source: null, all: [], items: [], count: 0, rows: {}, events: new Map(), repeats: new Map(), packets: new Map(), place: -1 };

// --- the list ------------------------------------------------------------------------------------------------------

// Returns two ascending lists as one.
function mergedRows(a, b) {
  const both = new Uint32Array(a.length + b.length);
  for (let i = 0, j = 0, k = 0; k < both.length; k++) both[k] = j === b.length || (i < a.length && a[i] < b[j]) ? a[i++] : b[j++];
  return both;
}

// Returns the shortest pause that is listed.
function pauseLeast(rows) {
  const { time } = state.packets, step = Math.max(1, Math.floor(rows.length / SAMPLED)), between = [];
  for (let k = 1; k < rows.length; k += step) between.push(time[rows[k]] - time[rows[k - 1]]);
  between.sort((one, other) => one - other);
  const spanned = rows.length ? time[rows[rows.length - 1]] - time[rows[0]] : 0;
  return Math.max(PAUSE_FACTOR * (between[between.length >> 1] ?? 0), Math.min(PAUSE_LEAST, PAUSE_SHARE * spanned), 1e-6);
}

// Returns the packets in a range and the pauses between them.
function itemsOf(all, range) {
  const { time } = state.packets, rows = range ? all.filter((i) => time[i] >= range[0] && time[i] <= range[1]) : all;
  const least = pauseLeast(rows), pauses = [];
  for (let k = 1; k < rows.length; k++) if (time[rows[k]] - time[rows[k - 1]] >= least) pauses.push(k);
  const items = new Int32Array(rows.length + pauses.length);
  let next = 0, at = 0;
  for (let k = 0; k < rows.length; k++) {
    if (pauses[next] === k) {
      items[at++] = ~rows[k];
      next++;
    }
    items[at++] = rows[k];
  }
  return { items, count: rows.length };
}

const pauseText = (item) => {
  const at = firstAtOrAfter(listed.all, ~item), { time } = state.packets;
  return `${duration((time[~item] - time[listed.all[at - 1]]) * 1e9)} without a packet`;
};

// --- verdicts ------------------------------------------------------------------------------------------------------

const packetKey = (capture, frame) => capture * 2 ** 40 + frame;
const eventsAt = (i) => listed.events.get(packetKey(state.packets.capture[i], state.packets.frame[i])) || [];
const kindOf = (event) => data.words.kind[state.events.kind[event]];
const evidenceOf = (event) => {
  const by = data.words.evidence[state.events.evidence[event]];
  return by ? EVIDENCE[by] || by.replaceAll("_", " ") : "";
};
const placeOf = (event) => data.words.place[state.events.place[event]] || "";

// Returns the row of a packet that has an event or that an event names; -1 if the page lacks it.
const rowOfPacket = (capture, frame) => listed.packets.get(packetKey(capture, frame)) ?? -1;

// Indexes the events of a flow by their packets, and its retransmissions by the packets whose bytes they repeat.
function indexEvents(flow) {
  const e = state.events, p = state.packets, rows = [...rowsOf(e, flow)];
  const put = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
  const named = new Set(rows.flatMap((event) => [packetKey(e.capture[event], e.frame[event]), packetKey(e.capture[event], e.related_frame[event])]));
  Object.assign(listed, { events: new Map(), repeats: new Map(), packets: new Map() });
  if (rows.length) {
    for (const i of listed.all) {
      const key = packetKey(p.capture[i], p.frame[i]);
      if (named.has(key)) listed.packets.set(key, i);
    }
  }
  for (const event of rows) {
    put(listed.events, packetKey(e.capture[event], e.frame[event]), event);
    if (repeatsPacket(event)) put(listed.repeats, packetKey(e.capture[event], e.related_frame[event]), event);
  }
}

// Returns whether an event is a retransmission of bytes of its related packet; else that packet opened the gap which it fills.
function repeatsPacket(event) {
  const e = state.events, p = state.packets, again = rowOfPacket(e.capture[event], e.frame[event]), first = rowOfPacket(e.capture[event], e.related_frame[event]);
  if (!kindOf(event).endsWith("retransmission") || again < 0 || first < 0) return false;
  return p.sequence[first] < p.sequence[again] + p.size[again] && p.sequence[again] < p.sequence[first] + p.size[first];
}

function relatedText(event) {
  const related = state.events.related_frame[event];
  if (kindOf(event).endsWith("duplicate")) return `copy of frame ${related}`;
  if (!kindOf(event).endsWith("retransmission")) return `see frame ${related}`;
  return repeatsPacket(event) ? `first sent in frame ${related}` : `fills the gap before frame ${related}`;
}

function eventText(event) {
  const e = state.events, kind = kindOf(event), parts = [PHRASES[kind] || kind.replaceAll("_", " ")], related = e.related_frame[event];
  if (e.spurious[event] === 1) parts.push("spurious");
  if (!Number.isNaN(related)) parts.push(relatedText(event));
  const where = placeOf(event), by = evidenceOf(event);
  if (where) parts.push(kind.endsWith("retransmission") && e.spurious[event] !== 1 ? `lost ${where}` : where === "capture" ? "in the capture" : where);
  if (by) parts.push(`by ${by}`);
  return parts.join(", ");
}

// Returns the events that repeat a packet. One that was lost is not known to be: it is retransmitted for some reason.
const repeatsOf = (i) => listed.repeats.get(packetKey(state.packets.capture[i], state.packets.frame[i])) || [];
function repeatedText(event) {
  const e = state.events, again = `retransmitted in frame ${e.frame[event]}`;
  if (e.spurious[event] === 1) return `arrived; ${again}`;
  return placeOf(event) === "downstream" ? `lost downstream; ${again}` : again;
}
const isLost = (i) => repeatsOf(i).some((event) => placeOf(event) === "downstream" && state.events.spurious[event] !== 1);

// Returns the text of a packet without a verdict: flags, SACK blocks, or whether it acknowledges new data.
function plainText(i) {
  const p = state.packets, known = p.known[i], parts = [];
  if (known & KNOWN.fragment) parts.push(`fragment at ${whole(p.offset[i])}`);
  if (known & KNOWN.flags && p.flags[i] & 7) parts.push(flagText(p.flags[i]));
  if (known & KNOWN.sack) parts.push(`SACK ${p.sacks.get(i).map(([from, to]) => `${whole(from)}–${whole(to)}`).join(", ")}`);
  else if (known & KNOWN.ack && !p.size[i]) {
    const own = p.rows(p.who[i]), at = firstAtOrAfter(own, i);
    if (at > 0 && p.known[own[at - 1]] & KNOWN.ack && p.ack[i] > p.ack[own[at - 1]]) parts.push("new data acknowledged");
  }
  return parts.join(", ");
}

// Returns shape, text and weight of the verdict on a packet.
function packetVerdict(i) {
  const events = eventsAt(i), repeats = repeatsOf(i), loud = events.find((event) => !QUIET.has(kindOf(event)));
  const texts = [...events.map(eventText), ...repeats.map(repeatedText)];
  if (!texts.length) return { shape: "", text: plainText(i), weight: "quiet" };
  const shape = (loud !== undefined && SHAPES[kindOf(loud)]) || (isLost(i) ? "–" : "");
  const plain = QUIET.has(kindOf(events[0] ?? repeats[0])) && state.packets.known[i] & KNOWN.sack ? plainText(i) : "";
  return { shape, text: [...texts, plain].filter(Boolean).join("; "), weight: shape ? "alarm" : loud === undefined && !repeats.length ? "quiet" : "plain" };
}

// --- the table -----------------------------------------------------------------------------------------------------

const secondsText = (seconds) => seconds.toFixed(6);
const directionArrow = (i) => (state.packets.who[i] % 2 ? "←" : "→");

function packetCell(row, text, name) {
  const made = row.insertCell();
  made.setAttribute("role", "gridcell");
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function pauseRow(item) {
  const row = document.createElement("tr"), made = packetCell(row, pauseText(item));
  row.className = "pause";
  row.setAttribute("role", "row");
  made.colSpan = narrow.matches ? 5 : 7;
  return row;
}

function packetRow(i) {
  const p = state.packets, row = document.createElement("tr"), { shape, text, weight } = packetVerdict(i), tcp = p.known[i] & KNOWN.sequence;
  row.setAttribute("role", "row");
  row.dataset.frame = p.frame[i];
  row.dataset.row = i;
  row.id = `packet-${i}`;
  row.setAttribute("aria-selected", i === listed.place);
  packetCell(row, String(p.frame[i]), "n frame-number");
  packetCell(row, secondsText(p.time[i]), "n");
  packetCell(row, directionArrow(i));
  packetCell(row, tcp && (p.size[i] || p.flags[i] & 7) ? whole(p.sequence[i]) : "", "n");
  packetCell(row, p.size[i] ? whole(p.size[i]) : "", "n wide");
  packetCell(row, p.known[i] & KNOWN.ack ? whole(p.ack[i]) : "", "n wide");
  const verdict = packetCell(row, "", `v ${weight}`), mark = document.createElement("i");
  mark.textContent = shape;
  verdict.append(...(shape ? [mark, text] : [text]));
  verdict.title = text;
  return row;
}

function drawTable(first, count) {
  const body = document.createElement("tbody");
  body.setAttribute("role", "rowgroup");
  for (let at = first; at < first + count; at++) {
    const item = listed.items[at], row = item < 0 ? pauseRow(item) : packetRow(item);
    row.setAttribute("aria-rowindex", at + 2);
    body.append(row);
  }
  $("packet-rows").querySelector("tbody").replaceWith(body);
  if (body.querySelector(`#packet-${listed.place}`)) $("packet-rows").setAttribute("aria-activedescendant", `packet-${listed.place}`);
  else $("packet-rows").removeAttribute("aria-activedescendant");
}

// --- the choice ----------------------------------------------------------------------------------------------------

const tabOf = () => (TABS.includes(choice.tab) ? choice.tab : TABS[0]);

function packetCountText(count, all) {
  if (state.packets.places.get(choice.flow) === undefined) return "The packets of this flow are not in the page.";
  const some = `${whole(count)} ${count === 1 ? "packet" : "packets"}${choice.range ? ` of ${whole(all)} in range` : ""}`;
  if (data.served && fetched.bucket > 1) return `${some} stand for ${whole(fetched.of)}: a shorter range lists each`;
  if (choice.frame === null) return some;
  return `${some} · ${listed.place < 0 ? `frame ${choice.frame} is not among them` : `frame ${choice.frame} chosen`}`;
}

function fillLists() {
  const { items, count } = itemsOf(listed.all, choice.range);
  listed.items = items;
  listed.count = count;
  $("packet-rows").setAttribute("aria-rowcount", items.length + 1);
}

// Returns the row of a frame among the packets listed; of several files, that of the first.
function placeInList(frame) {
  const { items } = listed, { frame: frames } = state.packets;
  return frame === null ? -1 : items.findIndex((item) => item >= 0 && frames[item] === frame);
}

function showTabs() {
  for (const name of TABS) {
    const own = name === tabOf();
    $(`tab-${name}`).setAttribute("aria-selected", own);
    $(`tab-${name}`).tabIndex = own ? 0 : -1;
    $(`panel-${name}`).hidden = !own;
  }
}

// Draws the list or the ladder anew, with the chosen frame in view.
function fillRows() {
  if (tabOf() === "ladder") showEnds();
  listed.rows[tabOf()].fill(listed.items.length, placeInList(choice.frame));
}

// Draws the list and the ladder of the chosen flow and range, with the chosen frame in view.
async function showPackets(changed) {
  if (!["flow", "range", "frame", "tab"].some((name) => changed.has(name))) return;
  const place = state.packets.places.get(choice.flow);
  $("packets").hidden = false;
  if (changed.has("flow") || listed.source !== state.packets) {
    listed.source = state.packets;
    listed.all = place === undefined ? [] : mergedRows(state.packets.rows(2 * place), state.packets.rows(2 * place + 1));
    indexEvents(choice.flow);
  }
  const other = changed.has("flow") || changed.has("range");
  if (other) fillLists();
  showTabs();
  const at = placeInList(choice.frame), rows = listed.rows[tabOf()];
  listed.place = at < 0 ? -1 : listed.items[at];
  $(`panel-${tabOf()}`).hidden = !listed.items.length;
  if (other || changed.has("tab")) fillRows();
  else rows.show(at < 0 ? rows.first() : at);
  $("packet-count").textContent = packetCountText(listed.count, listed.all.length);
  await showFrame();
}

// Chooses the packet that is some packets further, from the chosen one or the first in view.
function stepPacket(step) {
  const { items } = listed, rows = listed.rows[tabOf()], chosen = placeInList(choice.frame);
  let at = chosen < 0 ? rows.first() : chosen, left = chosen < 0 && Number.isFinite(step) ? 0 : Math.abs(step);
  for (let next = at; left && (next += Math.sign(step)) >= 0 && next < items.length; ) {
    if (items[next] < 0) continue;
    at = next;
    left--;
  }
  while (items[at] < 0) at++; // a pause is followed by its packet
  if (items.length) choose({ frame: state.packets.frame[items[at]] });
}

const PACKET_STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: PAGE_STEP, PageUp: -PAGE_STEP, Home: -Infinity, End: Infinity };

function packetKeys(event) {
  const step = PACKET_STEPS[event.key];
  if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  steps.byKey = true;
  stepPacket(step);
}

function listenPackets() {
  listed.rows = {
    packets: virtualRows($("packet-rows"), LISTED, drawTable),
    ladder: virtualRows($("ladder-rows"), LADDER, drawLadder),
  };
  for (const id of ["packet-rows", "ladder-rows"]) {
    $(id).addEventListener("keydown", packetKeys);
    $(id).addEventListener("click", (event) => {
      const row = event.target.closest("[data-frame]");
      if (row) choose({ frame: Number(row.dataset.frame) });
    });
  }
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => choose({ tab: name === TABS[0] ? null : name }));
  roving(document.querySelector("#packets [role=tablist]"), "[role=tab]", "horizontal");
  narrow.addEventListener("change", fillRows);
  addEventListener("resize", () => tabOf() === "ladder" && fillRows());
  listenFrame();
  onChoice(showPackets);
}
