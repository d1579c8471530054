import type { LuaScript } from './lua-script.ts';

/** The way to the server that has a key: of one server, or of a cluster. All of it rejects with a CacheUnavailableError. */
export interface RedisRoute {
  /** Runs a script of one key: limits are asked with every request. */
  runOnKey(script: LuaScript, key: string, args: readonly string[]): Promise<unknown>;
  /** Runs a script whose keys are in one slot. */
  run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** Runs one command of a key. */
  commandOnKey(key: string, args: readonly string[]): Promise<unknown>;
  /** Resolves when every key has a server that answers. */
  checkHealth(): Promise<void>;
}
