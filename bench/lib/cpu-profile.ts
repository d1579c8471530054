import { fileURLToPath } from 'node:url';
import { ROOT } from './product.ts';

interface CallFrame {
  functionName: string;
  url: string;
  lineNumber: number;
}

/** What `node --cpu-prof` writes; times are microseconds of the monotonic clock. */
export interface CpuProfile {
  nodes: { id: number; callFrame: CallFrame; children?: number[] }[];
  startTime: number;
  samples: number[];
  timeDeltas: number[];
}

/** Microseconds by name: of a group of code, or of a function. */
export type Spent = Map<string, number>;

export interface Breakdown {
  total: number;
  /** Self time by package or folder; what is native counts for its caller. */
  groups: Spent;
  /** Self time by function. */
  self: Spent;
  /** Time in a function of the product and all that it called, until the next await. */
  inclusive: Spent;
}

interface Frame {
  group: string;
  name: string;
  isOwn: boolean;
  parent: Frame | undefined;
}

/** Where the samples between two instants of the monotonic clock were. Idle time is left out. */
export function breakDown(profile: CpuProfile, fromUs: number, toUs: number): Breakdown {
  const frames = framesOf(profile);
  const breakdown: Breakdown = { total: 0, groups: new Map(), self: new Map(), inclusive: new Map() };
  let at = profile.startTime;
  for (const [index, id] of profile.samples.entries()) {
    const spent = profile.timeDeltas[index + 1] ?? 0;
    at += profile.timeDeltas[index] ?? 0;
    const frame = frames.get(id);
    if (!frame || frame.group === 'idle' || at < fromUs || at > toUs) continue;
    breakdown.total += spent;
    add(breakdown.groups, frame.group, spent);
    add(breakdown.self, frame.name, spent);
    for (const name of ownAncestors(frame)) add(breakdown.inclusive, name, spent);
  }
  return breakdown;
}

function framesOf({ nodes }: CpuProfile): Map<number, Frame> {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const frames = new Map<number, Frame>();
  const frameOf = (id: number): Frame | undefined => {
    const known = frames.get(id);
    const node = byId.get(id);
    if (known || !node) return known;
    const parent = frameOf(parents.get(id) ?? -1);
    const { url, lineNumber, functionName } = node.callFrame;
    const group = groupOf(node.callFrame) ?? parent?.group ?? 'idle';
    const name = `${functionName || '(anonymous)'} ${place(url)}${url === '' ? '' : `:${lineNumber + 1}`}`.trim();
    const frame = { group, name, isOwn: group.startsWith('src') && url !== '', parent };
    frames.set(id, frame);
    return frame;
  };
  for (const { id } of nodes) frameOf(id);
  return frames;
}

/** The folder of the product, the package, or the part of Node; undefined for natives, which belong to their caller. */
function groupOf({ url, functionName }: CallFrame): string | undefined {
  if (url === '') {
    if (functionName === '(garbage collector)') return 'garbage collector';
    if (functionName === '(program)') return 'native: sockets, event loop';
    return functionName === '(idle)' || functionName === '(root)' ? 'idle' : undefined;
  }
  if (url.startsWith('wasm:')) return 'PGlite: PostgreSQL itself (wasm)';
  if (url.startsWith('node:')) return nodePart(url);
  const path = place(url);
  const [, packageName] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (packageName !== undefined) return packageName;
  const [top = '', folder = '', file] = path.split('/');
  return file === undefined ? top : `${top}/${folder}`;
}

function nodePart(url: string): string {
  if (/http/.test(url)) return 'node:http';
  if (/stream|net$|_tls|stream_base/.test(url)) return 'node:net, streams';
  if (/timers|task_queues|async|next_tick|promise/.test(url)) return 'node:timers, tasks, async context';
  return /events/.test(url) ? 'node:events' : 'node: other';
}

function place(url: string): string {
  if (!url.startsWith('file:')) return url;
  const path = fileURLToPath(url);
  return path.startsWith(`${ROOT}/`)
    ? path.slice(ROOT.length + 1)
    : path.replace(/.*\/node_modules\//, 'node_modules/');
}

function ownAncestors(frame: Frame): Set<string> {
  const names = new Set<string>();
  for (let at: Frame | undefined = frame; at; at = at.parent) if (at.isOwn) names.add(at.name);
  return names;
}

function add(spent: Spent, name: string, us: number): void {
  spent.set(name, (spent.get(name) ?? 0) + us);
}
