import { readFileSync } from 'node:fs';

type Line = Record<string, unknown>;

const SHOWN = 400;
const REPEATED = 3;

/** Prints where two recordings differ, by exchange. Exit code 1 where they do. */
const [, , before, after] = process.argv;
if (before === undefined || after === undefined) throw new Error('usage: compare.ts BEFORE AFTER');
const [old, young] = [groupsOf(before), groupsOf(after)];
const differing = [...new Set([...old.keys(), ...young.keys()])]
  .map((key) => ({ key, faults: differences(old.get(key) ?? [], young.get(key) ?? []) }))
  .filter(({ faults }) => faults.length > 0);
process.stdout.write(differing.length === 0 ? 'the same\n' : `${told(differing).join('\n')}\n`);
process.exitCode = differing.length === 0 ? 0 : 1;

/** Each difference under its exchange; one that is the same in many is told in the first ones, and counted at the end. */
function told(all: readonly { key: string; faults: string[] }[]): string[] {
  const counts = new Map<string, number>();
  const texts = all.flatMap(({ key, faults }) => {
    const fresh = faults.filter((fault) => {
      counts.set(fault, (counts.get(fault) ?? 0) + 1);
      return (counts.get(fault) ?? 0) <= REPEATED;
    });
    return fresh.length === 0 ? [] : [key, ...fresh];
  });
  const often = [...counts].filter(([, count]) => count > REPEATED).map(([fault, count]) => `${count} times\n${fault}`);
  return [...texts, `${all.length} exchanges and sections differ`, ...often];
}

/** The lines of a recording, by what they are of. */
function groupsOf(path: string): Map<string, Line[]> {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  const parsed: Line[] = lines.map((line) => JSON.parse(line));
  return Map.groupBy(parsed, ({ exchange, section }) => `${exchange}${section === undefined ? '' : ` [${section}]`}`);
}

function differences(left: readonly Line[], right: readonly Line[]): string[] {
  const [a, b] = [left.map(textOf), right.map(textOf)];
  const [onlyLeft, onlyRight] = [without(a, b), without(b, a)];
  if (onlyLeft.length === 0 && onlyRight.length === 0) return a.join() === b.join() ? [] : ['  in another order'];
  const paired = Math.min(onlyLeft.length, onlyRight.length);
  return [
    ...onlyLeft
      .slice(0, paired)
      .flatMap((text, index) => within(opened(JSON.parse(text)), opened(JSON.parse(onlyRight[index] ?? 'null')), '')),
    ...onlyLeft.slice(paired).map((text) => `  - ${cut(text)}`),
    ...onlyRight.slice(paired).map((text) => `  + ${cut(text)}`),
  ];
}

/** What one list has more often than the other. */
function without(these: readonly string[], those: readonly string[]): string[] {
  const left = [...those];
  return these.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function within(a: unknown, b: unknown, path: string): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const [x, y] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
    const faults = [...new Set([...x.keys(), ...y.keys()])].flatMap((name) =>
      within(x.get(name), y.get(name), `${path}.${name}`),
    );
    return faults.length > 0 ? faults : [`  ${path}: members in another order`];
  }
  return [`  ${path}\n    - ${cut(JSON.stringify(a))}\n    + ${cut(JSON.stringify(b))}`];
}

/** With the JSON that texts hold opened, so that a member of a body has a path. */
function opened(value: unknown): unknown {
  if (typeof value === 'string' && /^[[{]/.test(value)) {
    try {
      return opened(JSON.parse(value));
    } catch {
      return value;
    }
  }
  if (Array.isArray(value)) return value.map(opened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, opened(member)]));
}

function textOf(line: Line): string {
  return JSON.stringify(line);
}

function cut(text: string | undefined): string {
  return text === undefined ? '(absent)' : text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
