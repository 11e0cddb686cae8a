// The series of overlaid flows: for each flow one of bytes sent, in flight, throughput and round trip, of the direction that carries more,
// and its retransmissions, which one button of the legend hides.
const RETRANSMITTED = "retransmitted";
const OVERLAID_KINDS = { sequence: "steps", flight: "steps", rate: "steps", rtt: "marks", [RETRANSMITTED]: "marks" }; // a kind of lines is a panel
const MARKS_OF_LINE = 12; // symbols on a line, which distinguish it without its color

const RETRANSMITTED_LOOK = { panel: "sequence", symbol: "x-thin", size: 9, switch: RETRANSMITTED };

const figureSeries = () => state.overlaid || data.figure.series;
const seriesByKey = (key) => figureSeries().find((series) => series.key === key);
const keyOf = (panel, flow) => `${panel}@${flow}`;

// Returns the packets of a flow that the page holds, with their rows by direction; null if it has none. `begin` is the time of its
// first packet if it is known, and `bucket` the number of packets for which some stand.
function packetsOfFlow(flow) {
  const own = fetched.held.get(flow), p = data.served ? own?.packets : state.packets;
  if (!p?.places.has(flow)) return null;
  const place = p.places.get(flow), rows = [p.rows(2 * place), p.rows(2 * place + 1)];
  const firsts = rows.filter((side) => side.length).map((side) => p.time[side[0]]);
  return { p, rows, bucket: own?.bucket ?? 1, begin: own ? own.begin : firsts.length ? Math.min(...firsts) : null };
}

// Returns whether the page lacks packets of a flow in view: it has the first ones, or some of each bucket.
function isCutOf(f, { rows, bucket }) {
  return rows[0].length + rows[1].length < f.packets && (data.packets.cut || (data.served && bucket > 1));
}

// --- a flow ----------------------------------------------------------------------------------------------------

// Returns the highest byte sent so far of a TCP direction, or the payload so far of another one.
function sentSoFar(p, rows, tcp) {
  const carries = rows.filter((i) => p.size[i] > 0 && (!tcp || p.known[i] & KNOWN.sequence));
  let sum = 0;
  return picked(p, carries, (i) => (sum = tcp ? Math.max(sum, p.sequence[i] + p.size[i]) : sum + p.size[i]));
}

// Returns the retransmissions of a direction, each at the sequence number of its segment.
function retransmittedIn(f, p, rows, main) {
  const found = {}, e = state.events;
  for (const event of rowsOf(e, f.flow)) {
    const i = e.direction[event] === main && isRetransmission(data.words.kind[e.kind[event]] || "") ? packetOf(p, rows[main], event) : -1;
    if (i >= 0 && p.known[i] & KNOWN.sequence) put(found, RETRANSMITTED, p.time[i], p.sequence[i], { frame: p.frame[i], capture: p.capture[i], text: `${verdictText(event)}<br>${packetText(p, i, true)}` });
  }
  return found;
}

// Returns the series of a flow by panel, without throughput if its packets give it.
function ofPackets(f, held) {
  const { p, rows } = held, tcp = f.protocol === "tcp", main = shownDirection(f), found = { sequence: sentSoFar(p, rows[main], tcp) };
  if (tcp) {
    const { flight } = flightData(p, rows, main), back = rows[1 - main];
    if (flight) found.flight = flight;
    found.rtt = picked(p, back.filter((i) => p.known[i] & KNOWN.rtt), (i) => p.rtt[i]);
  }
  for (const source of Object.values(found)) source.text = (k) => packetText(p, source.row[k], tcp);
  if (isCutOf(f, held)) found.rate = seriesData(f.flow, main)[`throughput${main}`];
  return tcp ? { ...found, ...retransmittedIn(f, p, rows, main) } : found;
}

function ofBins(f) {
  const main = shownDirection(f), found = seriesData(f.flow, main);
  return { flight: found.flight, rate: found[`throughput${main}`], rtt: found[`rtt${main}`] };
}

// Returns a series of points at the times of the axis.
function shiftedBy(source, shift) {
  const { text } = sorted(source), made = { ...sorted(source), shift };
  if (shift) made.x = Float64Array.from(made.x, (time) => time + shift);
  return { ...made, text };
}

// Takes the series of all drawn flows. Returns the times of their first and last packets.
function takeOverlaid() {
  const found = {}, ends = {};
  state.overlaid = [];
  for (const flow of drawnFlows()) {
    const f = flowAt(state.flows.rowOf(flow)), held = packetsOfFlow(flow), shift = shiftOf(flow);
    for (const [panel, source] of Object.entries(held ? ofPackets(f, held) : ofBins(f))) {
      if (source?.x.length) found[keyOf(panel, flow)] = shiftedBy(source, shift);
    }
    for (const rows of held?.rows || []) if (rows.length) ends[`${flow}.${rows[0]}`] = { x: [0, rows.length - 1].map((k) => held.p.time[rows[k]] + shift) };
    for (const [kind, mode] of Object.entries(OVERLAID_KINDS)) {
      const own = { key: keyOf(kind, flow), name: `flow ${flow}`, panel: kind, flow, mode, color: colorOfFlow(flow), dash: "solid", symbol: FLOW_SYMBOLS[placeOfFlow(flow)], size: mode === "marks" ? 5 : 7, shown: true, fill: false, about: "" };
      state.overlaid.push(kind === RETRANSMITTED ? { ...own, ...RETRANSMITTED_LOOK } : own);
    }
  }
  state.full = found;
  return ends;
}

// --- throughput ------------------------------------------------------------------------------------------------

// Returns the throughput of each drawn flow in a view, in the same bins.
function overlaidRates(range) {
  state.bin = 0;
  const held = drawnFlows().map((flow) => ({ f: flowAt(state.flows.rowOf(flow)), held: packetsOfFlow(flow), shift: shiftOf(flow) }));
  const flows = held.filter((one) => one.held && !isCutOf(one.f, one.held)).map((one) => ({ ...one, p: one.held.p, rows: one.held.rows[shownDirection(one.f)] }));
  if (!flows.length) return {};
  const countIn = ({ p, rows, shift }) => firstAtOrAfter(rows, range[1] - shift, (row) => p.time[row]) - firstAtOrAfter(rows, range[0] - shift, (row) => p.time[row]);
  const found = {}, bins = binsOf(range, Math.max(...flows.map(countIn)));
  for (const { f, p, rows, shift } of flows) {
    if (rows.length) found[keyOf("rate", f.flow)] = clipped(rateIn(p, rows, bins, (i) => p.ip[i], (rate) => `${prefixed(rate, "bit/s")} of IP ${ARROWS[shownDirection(f)]}`, shift), p.time[rows[0]] + shift, p.time[rows[rows.length - 1]] + shift);
  }
  return found;
}

// Returns a line of rates without the bins before the first and after the last packet of its flow; it ends at 0.
function clipped(line, from, to) {
  const bin = line.frame[0][1] - line.frame[0][0], first = Math.max(0, firstAtOrAfter(line.x, from + EDGE * bin) - 1), last = Math.min(line.x.length - 1, firstAtOrAfter(line.x, to + EDGE * bin));
  const ends = to < line.x[last], made = { ...line };
  for (const name of ["x", "y", "frame", "capture"]) made[name] = line[name].slice(first, last + 1);
  if (ends && last > first) made.y[made.y.length - 1] = 0;
  made.text = (k) => line.text(first + k);
  return made;
}
