import { isDeepStrictEqual } from 'node:util';
import type { Block } from './markdown.ts';

interface Message {
  status: string;
  headers: Map<string, string>;
  body: string;
}

/**
 * In what an answer differs from the one that a page shows; empty where it does not. Members and types must be the same;
 * values where the fence says `fixed` (all of them) or `fixed: name, name` (those of these members).
 */
export function differences(shown: Block, output: string): string[] {
  const isSame = valuesToCompare(shown.info);
  return shown.lang === 'http'
    ? messageDifferences(messageOf(shown.text), messageOf(output), isSame)
    : jsonDifferences(shown.text, output, isSame);
}

type IsSame = (name: string) => boolean;

function valuesToCompare(info: string): IsSame {
  const [, names] = /\bfixed(?::\s*([\w, -]+))?/.exec(info) ?? [];
  if (!/\bfixed\b/.test(info)) return () => false;
  const listed = names?.split(/[\s,]+/);
  return (name) => listed === undefined || listed.includes(name);
}

function jsonDifferences(shown: string, output: string, isSame: IsSame): string[] {
  return compared(JSON.parse(shown), JSON.parse(lastDocument(output)), '', isSame);
}

/** The whole output where it is JSON, else its last line. */
function lastDocument(output: string): string {
  try {
    JSON.parse(output);
    return output;
  } catch {
    return output.trimEnd().split('\n').at(-1) ?? '';
  }
}

function compared(shown: unknown, is: unknown, path: string, isSame: IsSame): string[] {
  const at = path === '' ? 'the answer' : path;
  if (kindOf(shown) !== kindOf(is)) return [`${at} is ${kindOf(is)}, not ${kindOf(shown)}: ${JSON.stringify(is)}`];
  if (Array.isArray(shown) && Array.isArray(is)) {
    if (shown.length > 0 && is.length === 0) return [`${at} is empty`];
    return is.flatMap((item, index) =>
      compared(shown[Math.min(index, shown.length - 1)], item, `${path}[${index}]`, isSame),
    );
  }
  if (isObject(shown) && isObject(is)) {
    const names = [...new Set([...Object.keys(shown), ...Object.keys(is)])];
    return names.flatMap((name) => {
      const inside = path === '' ? name : `${path}.${name}`;
      if (!(name in is)) return [`${inside} is missing`];
      return name in shown ? compared(shown[name], is[name], inside, isSame) : [`${inside} is not shown`];
    });
  }
  const name = /(\w+)(?:\[\d+\])*$/.exec(path)?.[1] ?? '';
  return isSame(name) && !isDeepStrictEqual(shown, is)
    ? [`${at} is ${JSON.stringify(is)}, not ${JSON.stringify(shown)}`]
    : [];
}

function messageDifferences(shown: Message, is: Message, isSame: IsSame): string[] {
  const status = shown.status === is.status ? [] : [`the status is ${is.status}, not ${shown.status}`];
  const headers = [...shown.headers].flatMap(([name, value]) => {
    const given = is.headers.get(name);
    if (given === undefined) return [`the header ${name} is missing`];
    return isSame(name) && given !== value ? [`the header ${name} is ${given}, not ${value}`] : [];
  });
  const body = shown.body === '' ? [] : jsonDifferences(shown.body, is.body, isSame);
  return [...status, ...headers, ...body];
}

/** The last HTTP message of a text, as `curl -i` prints it. */
function messageOf(text: string): Message {
  const from = text.lastIndexOf('HTTP/1.1 ');
  const [head = '', ...rest] = text.slice(from).replaceAll('\r', '').split('\n\n');
  const [status = '', ...headers] = head.trimEnd().split('\n');
  const named = headers.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { status: status.trim(), headers: new Map(named), body: rest.join('\n\n').trim() };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return kindOf(value) === 'object';
}
