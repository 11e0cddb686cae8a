// @ts-check
// SPDX-License-Identifier: Apache-2.0
// The page that runs experiments: it asks for the state each second, and for figures when a test is done.
import { element } from "../elements.js";
import { pageKeys, quietButtons } from "../keys.js";
import { $, CONFIG, inColors, inOwnColors, loadPlotly } from "../plotly.js";
import { fitted } from "../print.js";

const EVERY_MS = 1000;
const form = /** @type {HTMLFormElement} */ ($("form"));
/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ ($(id));
/** @type {{ run: string | null, done: number, beside: Set<string>, chosen: string | null }} */
const shown = { run: null, done: -1, beside: new Set(), chosen: null };

/** @param {string} path @param {Record<string, string>} [query] */
async function ask(path, query = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
  return answered(answer);
}

/** @param {Response} answer */
async function answered(answer) {
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

/** @param {string} path @param {Record<string, string>} [fields] */
async function act(path, fields = {}) {
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  return answered(await fetch(path, { method: "POST", headers, body: new URLSearchParams(fields).toString() }));
}

// Shows why an action failed, until the next try.
/** @param {() => Promise<unknown>} work */
async function tried(work) {
  $("problem").textContent = "";
  try {
    await work();
  } catch (error) {
    $("problem").textContent = error instanceof Error ? error.message : String(error);
  }
}

/** @returns {Record<string, string>} */
function fields() {
  const chosen = new FormData(form);
  const plan = String(chosen.get("plan"));
  const always = ["plan", "profile", "trials", "scale"];
  const much = chosen.get("amount") === "file" ? "file" : "value";
  const names = plan === "own" ? [...always, "sizes", "amount", much, "rate", "address"] : always;
  const values = Object.fromEntries(names.map((name) => [name, String(chosen.get(name) ?? "")]).filter(([, value]) => value !== ""));
  return plan === "own" ? { ...values, protocols: chosen.getAll("protocol").join(" ") } : values;
}

/** @param {number} seconds */
const inWords = (seconds) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`);

/** @param {ConsoleRun} run */
function progressText(run) {
  if (run.total === null) return run.running ? "starting" : run.stopped ? "stopped before its first test" : `ended: ${run.error}`;
  const tests = `${run.done} of ${run.total} tests`;
  if (run.running) return run.left_s == null ? tests : `${tests}, about ${inWords(run.left_s)} left`;
  if (run.stopped) return `${tests}, stopped`;
  if (run.error) return `${tests}, ended: ${run.error}`;
  return run.done === run.total ? `${tests}, done` : tests;
}

/** @param {ConsoleRun} run */
function showRun(run) {
  $("run").hidden = false;
  $("h-run").textContent = run.name;
  const progress = /** @type {HTMLProgressElement} */ ($("progress"));
  progress.max = run.total ?? 1;
  progress.value = run.done;
  $("said").textContent = progressText(run);
}

/** @param {ConsoleRun[]} runs */
function showRuns(runs) {
  $("none").hidden = runs.length > 0;
  $("runs").hidden = runs.length === 0;
  const body = /** @type {HTMLTableElement} */ ($("runs")).tBodies[0];
  body.replaceChildren(...runs.map((run) => {
    const show = element("button", { type: "button", className: "plain", textContent: "show" });
    show.addEventListener("click", () => {
      choose(run.name);
      showRun({ ...run, running: false });
      tried(drawFigures);
    });
    const beside = element("input", { type: "checkbox", checked: shown.beside.has(run.name) });
    beside.setAttribute("aria-label", `draw ${run.name} beside the run that is shown`);
    beside.addEventListener("change", () => {
      if (beside.checked) shown.beside.add(run.name);
      else shown.beside.delete(run.name);
      tried(drawFigures);
    });
    const report = element("a", { href: `report?${new URLSearchParams({ run: run.name })}`, target: "_blank", textContent: "report" });
    return element("tr", {}, element("td", {}, run.name), element("td", {}, run.title ?? ""), element("td", { className: "number" }, `${run.done} of ${run.total}`),
      element("td", {}, show), element("td", {}, beside), element("td", {}, run.done ? report : ""));
  }));
}

/** @param {string} name */
function choose(name) {
  if (name !== shown.chosen) {
    $("figures").replaceChildren();
    $("failures").hidden = true;
  }
  shown.chosen = name;
  shown.done = -1;
  $("run").hidden = false;
  $("h-run").textContent = name;
}

async function drawFigures() {
  const name = shown.chosen;
  if (!name) return;
  const beside = () => [...shown.beside].join(" ");
  const asked = beside();
  const published = input("published").value;
  const { run, figures, failures } = await ask("figures", { run: name, with: asked, published });
  if (run !== shown.chosen || asked !== beside() || published !== input("published").value) return;
  $("failures").hidden = !failures.length;
  $("failures").textContent = failures.length ? `${failures.length === 1 ? "1 test" : `${failures.length} tests`} failed; ${failures[0].join(": ")}` : "";
  const place = $("figures");
  const parts = [...place.children];
  for (const part of parts.slice(figures.length)) part.remove();
  for (const [number, figure] of figures.entries()) {
    const part = parts[number] ?? place.appendChild(element("section", {}, element("h3"), element("div", { className: "plot" }), element("p", { className: "note" })));
    part.children[0].textContent = figure.title;
    part.children[2].textContent = figure.note;
    const plot = /** @type {Plot} */ (part.children[1]);
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", figure.title);
    const layout = fitted(inColors({ ...figure.layout, uirevision: name }), plot);
    await Plotly.react(plot, inOwnColors(figure.data), layout, { ...CONFIG, ...figure.config });
    quietButtons(plot);
  }
  document.body.dataset.figures = `${name} ${figures.length}`;
}

/** @type {string} */
let listed = "";

// Offers the files of the folder; what was chosen stays.
/** @param {string[]} files */
function showFiles(files) {
  const list = /** @type {HTMLSelectElement} */ ($("file"));
  const old = [...list.options].map((option) => option.text);
  if (JSON.stringify(old) === JSON.stringify(files)) return;
  const chosen = list.value;
  list.replaceChildren(...files.map((name) => element("option", { value: name, textContent: name, selected: name === chosen })));
}

// Shows the fields that go with the plan, the place and the amount that are chosen.
function showFields() {
  $("own").hidden = input("plan").value !== "own";
  const sendsFile = input("amount").value === "file";
  $("how-much").hidden = sendsFile;
  $("which-file").hidden = !sendsFile;
  const list = /** @type {HTMLSelectElement} */ ($("address"));
  const link = input("profile").value ? "yes" : "no";
  for (const option of list.options) option.hidden = option.disabled = option.dataset.link !== link;
  if (list.selectedOptions[0]?.disabled) list.value = [...list.options].find((option) => !option.disabled)?.value ?? "";
}

async function look() {
  /** @type {{ run: ConsoleRun | null, runs: ConsoleRun[], files: string[] }} */
  const { run, runs, files } = await ask("state");
  showFiles(files);
  const text = JSON.stringify(runs);
  if (text !== listed) showRuns(runs);
  listed = text;
  input("start").disabled = Boolean(run?.running);
  input("stop").disabled = !run?.running;
  if (!run) return;
  if (run.name !== shown.run) choose(run.name);
  if (shown.chosen === run.name) showRun(run);
  if (shown.chosen === run.name && run.total !== null && run.done !== shown.done) await drawFigures();
  Object.assign(shown, { run: run.name, done: run.total === null ? -1 : run.done });
}

async function watch() {
  try {
    await look();
    document.body.dataset.state = "answers";
  } catch (error) {
    document.body.dataset.state = "silent";
    $("said").textContent = error instanceof TypeError ? "wiretale has ended" : String(error);
  }
  setTimeout(watch, EVERY_MS);
}

async function start() {
  for (const id of ["plan", "profile", "amount"]) input(id).addEventListener("change", showFields);
  showFields();
  input("published").addEventListener("change", () => tried(drawFigures));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(async () => {
      await act("start", fields());
      await look();
    });
  });
  $("stop").addEventListener("click", () => tried(() => act("stop")));
  pageKeys();
  await loadPlotly();
  document.body.dataset.ready = "yes";
  watch();
}

start();
