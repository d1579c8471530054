import type { Answer, Portcullis } from '../harness.ts';
import type { Things } from './marked-node.ts';

/** A request that names one thing of a node. */
export interface SurfaceRow {
  /** The slot of the schema or the endpoint that it goes through. */
  covers: string;
  /** What is named. */
  thing(of: Things): string;
  /** `own`: what else the request needs, of the caller's node. `other`: the node whose thing is named. */
  ask(call: Call, id: string, own: Things, other: Things): Promise<Answer>;
  /** What the answer to another node has in it: proof that the request got as far as the thing. */
  says: string;
  /** Why the own node is answered alike; absent where it is not. */
  alike?: string;
}

/** Sends a request with a node's token. */
export type Call = Portcullis['call'];

/** What is named: a member of the things of a node, or picked from them. */
export type Thing =
  | { [Key in keyof Things]: Things[Key] extends string ? Key : never }[keyof Things]
  | ((of: Things) => string);

export function thingOf(thing: Thing): SurfaceRow['thing'] {
  return typeof thing === 'string' ? (of) => of[thing] : thing;
}

/** Why an answer is alike for every node. */
export const STORED = 'the id is stored as it came, and resolved nowhere';

/** Of the same shape and length, and of nothing. */
export function missing(id: string): string {
  const at = id.length - 6;
  return `${id.slice(0, at)}${id[at] === '7' ? '8' : '7'}${id.slice(at + 1)}`;
}

/** All of an answer that its caller can compare, without what was asked for and without ids that are new. */
export function told({ status, headers, text }: Answer, id: string): string {
  const given = [...headers].filter(([name]) => !LEFT_OUT.test(name)).map(([name, value]) => `${name}: ${value}`);
  const all = [status, ...given, text].join('\n');
  return all.replaceAll(id, '<id>').replaceAll(encodeURIComponent(id), '<id>');
}

/** Ids of what a request has made are of no node before it. */
export function withoutNewIds(answer: string): string {
  return answer.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>');
}

const LEFT_OUT = /^(date|x-correlation-id|x-ratelimit-.*|x-monthlylimit-.*)$/;
