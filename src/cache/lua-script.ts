import { createHash } from 'node:crypto';

/** A script that Redis runs as one step. */
export interface LuaScript {
  readonly source: string;
  readonly sha1: string;
  /** Whether its last argument is the epoch of the server that runs it. */
  readonly needsEpoch: boolean;
}

/** Prepares a script; Redis knows it by the SHA-1 of its text. */
export function luaScript(source: string, { needsEpoch = false } = {}): LuaScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex'), needsEpoch };
}
