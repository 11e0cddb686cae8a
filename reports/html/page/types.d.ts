// What the modules of the page hand to each other, and the data that Python gives the page (reports/html/analyze.py, diff.py). For tsc
// alone: nothing of it is in a page.

type Span = [number, number]; // from, to
type Numbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;
type Draw = (changed: Set<keyof Choice>) => unknown;

// --- the choice --------------------------------------------------------------------------------------------------

interface Choice {
  flow: number | null; // its number
  with: (number | null)[]; // flows that are overlaid, at the places of their colors
  range: Span | null; // seconds since the base of the page
  vertical: Record<string, Span>; // by panel
  finding: number | null; // from 1
  frame: number | null;
  toggled: string[]; // names of series and settings
  size: Record<string, number>; // px, by panel
  tab: string | null;
  match: string; // of the packet list
  find: string;
  group: string | null;
  only: string[]; // facets, as "port:443"
  during: Span | null; // seconds since the base of the page
  stack: string | null; // what the timeline is stacked by
}
type Change = Partial<Choice>;
type LinkedChoice = Omit<Choice, "flow"> & { flow: number | string | null }; // of a link, whose flow may be no number

// --- packed data -------------------------------------------------------------------------------------------------

type Packed = string; // gzip in base64
type PackedArray = [string, Packed]; // code of the array
type PackedPlanes = [string, number, Packed]; // and how many byte planes are kept
type PackedTable = Record<string, PackedArray | PackedPlanes>;
type PackedCounts = Record<"flows" | "bins" | "counts", PackedPlanes>; // flows and bins as steps
type PackedSpans = Record<"flows" | "counts" | "parts" | "gaps" | "lengths", PackedPlanes>;
interface PackedColumns { flows: PackedPlanes; begins: PackedPlanes; widths: PackedPlanes; mains: PackedPlanes; streams: Record<string, Packed> }
interface PackedPackets { count: number; flows: number[]; streams: Record<string, [number, Packed]>; cut: boolean; columns: PackedColumns | null }
interface PackedFlows {
  count: number; // of the capture
  held: number; // of them in the page
  columns: Record<string, PackedPlanes>;
  words: Record<string, string[]>;
  addresses: Packed;
  paths: string[];
  servers: string[];
  processes: string[];
  relations: string[];
  problems: { label: string; unit: string; flows: PackedPlanes; counts: PackedPlanes }[];
}
interface PackedTimes {
  count: number;
  flows: PackedPlanes;
  columns: Record<string, PackedPlanes>; // ns, by part
  parts: [name: string, words: string][];
}

// --- the data of the page ----------------------------------------------------------------------------------------

interface Finding {
  code: string;
  sentence: string;
  cited_flow: number | null; // the flow that shows it
  capture: number | null;
  flows: number[];
  frames: number[]; // cited ones, the first and the last at first
  whole: boolean; // whether all of the flow shows it
  from: number | null; // seconds since the base of the page
  to: number | null;
}
// A listed cause, in the order of the list: `main` is the finding that Show shows, and `span` its times if it is a single span.
interface CauseFlows { title: string; flows: number[]; packed_flows: PackedPlanes; members: number; from: number | null; to: number | null; main: number | null; findings: number[]; span: Span | null }
interface Facet { words: string; values: (row: number) => string[]; text?: (value: string) => string }
type Wanted = Pick<Choice, "only" | "find" | "during">;
interface ShownFinding extends Finding { from: number } // whose times are known
interface Panel { name: string; title: string; unit: string; height: number; shown: boolean; log: boolean }
interface Series {
  key: string;
  name: string;
  panel: string;
  color: string;
  mode: string;
  dash: string;
  symbol: string;
  size: number;
  shown: boolean;
  fill: boolean;
  about: string;
  flow?: number; // that is overlaid
  switch?: string; // the button of the legend, if several series share one
}
interface Band { part: string; words: string; style: string }
interface Frame { capture: number; frame: number; length: number; captured: number; kept: number; link: string; reason?: string }
type TreeNode = [label: string, from: number, size: number, below?: TreeNode[]];
interface Frames {
  files: (string | null)[]; // of the captures, as `wiretale cut` reads them
  list: Frame[];
  bytes: Packed;
  trees: Packed;
  decoded: number;
  made_by: string;
  reason: string;
}
interface Pair extends Record<"A" | "B", Course> { label: string; flows: Record<"A" | "B", number> | null }
interface Course {
  x: number[];
  throughput: (number | null)[];
  position: (number | null)[];
  rtt: (number | null)[];
  lost: (number | null)[];
  rtt_samples: number;
  delay_samples: number;
  rtt_shares: number[];
  delay_shares: number[];
}
interface PlotlyFigure { data: Trace[]; layout: Layout; config?: object; choices?: Way[] }
interface Way { label: string; traces: Record<string, unknown[]> }

interface PackedTimeline {
  start: number; first: number; last: number; width: number; // seconds
  pauses: Span[]; // bins, from and to
  rates: Packed;
  lost: Packed;
  missed: Packed;
  legs: number[]; // flows of which another leg is judged
  by_flow: { wider: number; flows: PackedPlanes; bins: PackedPlanes; bytes: PackedPlanes; packets: PackedPlanes } | null; // bins of so many of the timeline
  counts_by_flow: Record<"lost" | "missed", PackedCounts> | null;
}
interface PageData {
  base: string; // ns since the epoch
  served: boolean;
  live: string | null;
  flows: PackedFlows;
  times: PackedTimes;
  timeline: PackedTimeline | null;
  again: { command: string; filter: string; start: string; end: string };
  cut: { command: string; flows: boolean };
  findings: Finding[];
  causes: CauseFlows[];
  files: string[];
  series_flows: number[];
  whole_flows: number[];
  wire_mss: Record<number, number>;
  series: PackedTable;
  datagrams: PackedTable;
  events: PackedTable;
  blocks: PackedTable;
  spans: PackedSpans | null;
  turns: PackedTable;
  requests: { rows: Packed; held: number; of: number };
  bands: Band[];
  words: Record<string, string[]>;
  packets: PackedPackets;
  frames: Frames;
  figure: { panels: (Panel & { axis: number })[]; series: Series[]; plot: PlotlyFigure };
  figures: Record<string, PlotlyFigure>; // of pages of complete figures
  pairs: Pair[]; // of the page of two runs
  reports: Record<string, string>; // of its runs
  cdfs: Record<string, PlotlyFigure>;
  width: number; // seconds of a bin of two runs
}

// --- tables ------------------------------------------------------------------------------------------------------

interface Packets {
  who: Uint32Array; // the side of a flow: twice its place in `places`, and its direction
  time: Float64Array; // seconds since the base of the page
  frame: Float64Array;
  capture: Uint16Array;
  known: Uint16Array; // bits of KNOWN
  size: Float64Array; // of the payload
  sequence: Float64Array;
  ack: Float64Array;
  window: Float64Array;
  flags: Uint16Array;
  unique: Float64Array;
  rtt: Float64Array; // ms
  offset: Float64Array;
  ip: Float64Array;
  flight: Float64Array; // bytes of its direction in flight after a packet that stands for others; else empty
  opposite: Float64Array; // the same of the other direction
  sacks: Map<number, Span[]>;
  places: Map<number, number>; // by flow
  rows: (side: number) => Uint32Array;
}
interface HeldPackets { p: Packets; rows: Uint32Array[]; bucket: number; begin: number | null }
interface Problem { label: string; unit: string; sums: Float64Array }
interface Flows {
  number: Uint32Array;
  ip_version: Uint8Array;
  protocol_number: Uint8Array;
  source: Uint32Array; // places in `addresses`
  destination: Uint32Array;
  source_port: Uint32Array;
  destination_port: Uint32Array;
  path: Uint32Array;
  server: Uint32Array;
  process: Uint32Array;
  relation: Uint32Array;
  fragmented: Uint8Array;
  packets: Float64Array;
  bytes: Float64Array;
  lasted: Float32Array; // ms
  start: Float64Array; // ms since the base of the page
  throughput: Float32Array;
  rtt: Float32Array;
  main: Uint8Array; // the direction that carries more
  capture?: Uint8Array;
  protocol: Uint8Array;
  application: Uint8Array;
  state: Uint8Array;
  paths: string[];
  servers: string[];
  processes: string[];
  relations: string[];
  words: Record<string, string[]>;
  addresses: string[];
  problems: Problem[];
  rowOf: (number: number) => number; // -1 if the page lacks the flow
}
interface Flow { row: number; flow: number; name: string; protocol: string; path: string; relation: string; packets: number; main: number }
interface SeriesTable {
  flow: Uint32Array; direction: Uint8Array; start_ns: Float64Array; width_ns: Float64Array; throughput_bps: Float32Array;
  cumulative_throughput_bps: Float32Array; goodput_bps: Float32Array; rtt_ns: Float32Array; flight_bytes: Float32Array; window_bytes: Float32Array;
}
interface DatagramTable { flow: Uint32Array; capture: Uint16Array; first_ns: Float64Array; first_frame: Float64Array; fragments: Uint32Array; missing_bytes: Float64Array }
interface EventTable {
  flow: Uint32Array; capture: Uint16Array; direction: Uint8Array; time_ns: Float64Array; frame: Float64Array; related_frame: Float64Array;
  bytes: Float64Array; kind: Uint8Array; place: Uint8Array; evidence: Uint8Array; spurious: Uint8Array;
}
interface BlockTable {
  flow: Uint32Array; direction: Uint8Array; capture: Uint16Array; stream: Uint16Array; sequence: Float64Array; complete_ns: Float64Array;
  last_frame: Float64Array; latency_ns: Float64Array; head_of_line_ns: Float64Array; verdict: Uint8Array;
}
interface TurnTable { flow: Uint32Array; asked_ns: Float64Array; request_ns: Float64Array; network_ns: Float64Array; server_ns: Float64Array; pause_ns: Float64Array }
interface Tables { flows: Flows; packets: Packets; series: SeriesTable; datagrams: DatagramTable; events: EventTable; blocks: BlockTable }
// An exchange, or a handshake of TLS or QUIC, with what is known of it (reports/html/requests.py); times in ns since the base of the page.
interface ExchangeRow {
  kind: string; flow?: number; within?: number; client?: string; server?: string; name?: string; type?: string; outcome?: string; code?: string; turn?: number;
  frame?: number; answered?: number; capture?: number; asked?: number; response_bytes?: number; duration?: number; waited?: number; request?: number; request_pause?: number; network?: number;
  server_time?: number; response?: number; response_pause?: number; pause?: number; client_network?: number; retransmission_client?: number;
  retransmission_network?: number; retransmission_server?: number;
}
type ExchangeTime = "asked" | "waited" | "request" | "request_pause" | "network" | "server_time" | "response" | "response_pause" | "pause" | "client_network" | "retransmission_client" | "retransmission_network" | "retransmission_server";
interface RequestPart { part: string; from: number; to: number } // seconds; to Infinity: still open
interface Connection { lookups: ExchangeRow[]; connect?: ExchangeRow; tls?: ExchangeRow; secured?: number; used?: boolean }
interface PageRequest { flow: number | null; frame: number | null; client: string; label: string; result: string; failed: boolean; bytes: number | null; parts: RequestPart[]; from: number; to: number }
// Packets of a flow between two hosts; of an exchange without packets in the page, their rows are -1.
interface Message { flow: number; side: number; from: number; to: number; sent: number; capture: number; frame: number; first: number; row: number; packets: number; bytes: number; isAck: boolean; isAlone: boolean }
interface SoughtPayload { ip: number; size: number; ports: Span; protocol: string } // bytes of the IP packet and of its payload
interface Segment { side: number; from: number; size: number; time: number; frame: number | null; bytes: Uint8Array | null } // null: the page has no bytes of it
interface Piece extends Segment { kind: "bytes" | "elsewhere" | "gap" }
type PacketTest = { kind: "side"; side: number; without: boolean } | { kind: "number"; column: string; sign: string; number: number; without: boolean } | { kind: "text"; sought: string; without: boolean };
interface FetchedPackets { question: string; packets: Packets; of: number; bucket: number; begin: number | null }

// --- the figure of a flow ----------------------------------------------------------------------------------------

type FrameOrBin = number | Span | null; // the number of a frame, or the times of a bin
interface Points {
  x: number[] | Float64Array; // seconds
  y: number[] | Float64Array;
  y2?: number[] | Float64Array; // of bars
  frame: FrameOrBin[] | Float64Array;
  capture: number[] | Uint16Array;
  row?: number[] | Uint32Array; // of the packets
  text?: (k: number) => string;
  bin?: boolean;
  width?: number; // seconds of a column of time, whose least and greatest value are y and y2
  last?: Float64Array; // of each column
  shift?: number; // seconds that were added to x
  spans?: BandSpan[];
}
interface GrowingPoints extends Points { x: number[]; y: number[]; y2?: number[]; frame: FrameOrBin[]; capture: number[]; texts: string[] }
interface RateLine extends Points { x: number[]; y: number[]; frame: Span[]; capture: number[]; text: (k: number) => string; shift: number }
interface RangeOfColumns { places: Uint32Array; least: Float64Array; most: Float64Array; last: Float64Array | null } // of those that have it
interface ColumnsOfFlow {
  begin: number; // seconds
  width: number; // of a column
  main: number;
  at: Uint32Array; // columns with packets
  ip: Float64Array[]; // by direction the bytes until each of them, and of all
  ranges: Record<string, RangeOfColumns>;
}
type Drawn = [series: Series, source: Points, i: number]; // a point of a series
type PointsByKey = Record<string, Points>;
interface BandSpan { band: Band; merged: boolean; from: number; to: number }
interface PanelPlace { head: number; plot: number; bottom: number } // px from the top of the stack
interface Stack { places: PanelPlace[]; height: number }
interface Taken { full: PointsByKey; order: Uint32Array; overlaid: Series[] | null; extent: Span; drawable: boolean }
interface View { range: Span; all: PointsByKey; used: Panel[]; vertical: Record<string, Span>; stack: Stack; area: { l: number; w: number }; dense: boolean } // whether the canvas has a part of it
interface DrawnBand { part: string; place: number; x0: number; x1: number; y0: number; y1: number; color: string } // shares of the height, from the bottom
interface Dense { series: Series; source: Points; place: number } // a series of the canvas, in the panel at this place
interface Point {
  time: number;
  frame: FrameOrBin;
  capture: number;
  words?: string;
  kind?: string;
  series?: Series;
  source?: Points;
  i?: number; // in the source
  k?: number; // in the order of the flow
}
type Colors = Record<string, string>;
interface Ticks { tickvals: number[]; ticktext: string[]; unit: string }

// --- Plotly ------------------------------------------------------------------------------------------------------

interface Trace {
  type?: string; meta: string; name?: string; x: (number | null)[]; y: (number | null)[]; yaxis: string; visible?: boolean | string; data?: unknown;
  [name: string]: unknown;
}
interface Axis { range: number[]; fixedrange?: boolean; type?: string; r2l: (value: number) => number; l2r: (value: number) => number; [name: string]: unknown }
// Its parts are Plotly's, of which the page has no types.
interface Layout { width?: number; height?: number; font?: object; dragmode?: unknown; [name: string]: any }
interface Plot extends HTMLElement { data: Trace[]; layout: Layout; _fullLayout: Layout & { _size: object }; on: (event: string, listen: (change: any) => unknown) => void }
declare const Plotly: {
  react(place: HTMLElement, traces: object[], layout: object, config: object): Promise<unknown>;
  redraw(place: HTMLElement): Promise<unknown>;
  relayout(place: HTMLElement, change: object): Promise<unknown>;
  newPlot(place: HTMLElement, traces: object[], layout: object, config: object): Promise<unknown>;
  purge(place: Element): void;
  toImage(place: HTMLElement, options: object): Promise<string>;
};

// --- parts of the page -------------------------------------------------------------------------------------------

interface AxisPart { from: number; to: number; x: number; wide: number; isCut: boolean } // of the timeline: seconds, px
interface Traffic { pauses: { from: number; to: number }[]; first: number; width: number; from: number; to: number; rates: Float32Array; lost: Uint32Array; missed: Uint32Array }
interface FlowSums { wider: number; rows: Int32Array; bins: Uint32Array; bytes: Numbers; packets: Numbers } // an entry for each bin of a flow
interface FlowCounts { rows: Int32Array; bins: Uint32Array; counts: Numbers }
interface Layer { words: string; facet: string; rates: Float32Array } // of the stacked timeline; facet is "" if it has none
interface DrawnTraffic { rates: Float32Array; lost: Uint32Array; missed: Uint32Array; layers: Layer[]; flows: number | null; isCounted: boolean } // flows: how many are selected; isCounted: lanes are of them
type Part = "server" | "network" | "client" | "transfer";
interface Elements {
  find: HTMLInputElement;
  match: HTMLInputElement;
  flows: HTMLTableElement;
  groups: HTMLTableElement;
  plot: Plot;
  rtt: Plot;
  delay: Plot;
  pair: HTMLSelectElement;
  "stack-by": HTMLSelectElement;
  keys: HTMLDialogElement;
  distributions: HTMLDetailsElement;
}
// The elements that the page looks up by selectors are of HTML, but for those of named tags.
interface ParentNode {
  querySelector<E extends Element = HTMLElement>(selectors: string): E | null;
  querySelectorAll<E extends Element = HTMLElement>(selectors: string): NodeListOf<E>;
}
interface Element {
  closest<E extends Element = HTMLElement>(selectors: string): E | null;
}

interface SpanPlace { columns: { parts: Numbers; gaps: Numbers; lengths: Numbers }; at: number; count: number; spans?: BandSpan[] }
interface Bins { bin: number; place: number; origin: number; count: number; average: number }
interface Amount { name: string; of: (row: number) => number } // bytes of a packet
interface Arrival { x: number; number: number; latency: number; at: { frame: number; capture: number; text: string } }
interface Sampled { flow: number; unit: string; samples: number[]; log?: boolean }
interface SmallFigure { title: string; unit: string; told: string; traces: object[]; layout: object }
interface Counted { flow: number; unit: string; runs: number[] }
interface MemberPicture { name: string; flows: number[]; rates: Float64Array; losses: number[]; lost: number }
interface Press { x: number; y: number; place: number; pan: boolean; range: Span; vertical: Record<string, Span>; to?: number[]; waiting?: number; box?: HTMLElement }
interface Cause { item: HTMLElement; place: string; main: number; numbers: number[]; sentence: string }
type Lane = "lost" | "missed";
interface Wait { kind: "server" | "client" | "network"; from: number; to: number }
interface Grouping { head: string; key: (row: number) => number; name: (row: number) => string | number; other: string; otherKey: (row: number) => number }
interface Group { key: number; first: number; rows: number[]; bytes: number; problems: number[]; others: Set<number>; times: number[] | null }
interface Column {
  key: string;
  head: string;
  value: (row: number) => string | number;
  text?: (row: number) => string | Node;
  number?: boolean;
  descending?: boolean;
  bars?: boolean;
  desk?: boolean;
  wide?: boolean;
}
interface HeldFrame extends Frame { number: number; from: number; bytes: Uint8Array; tree: TreeNode[] | undefined; madeBy: string }
interface ConsoleRun { name: string; title?: string; done: number; total: number | null; running?: boolean; stopped?: boolean; left_s?: number | null; error?: string | null }
