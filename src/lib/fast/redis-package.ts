import { createRequire, Module } from 'node:module';
import type * as Redis from 'redis';

const load = createRequire(createRequire(import.meta.url).resolve('redis'));
const commandsPath = load.resolve('@redis/client/dist/lib/commands');
let commands: object | undefined;
const get = (_: object, name: string) => {
  // What imports it asks first whether it is an ES module that was compiled to CommonJS.
  if (name === '__esModule') return true;
  commands ??= Reflect.deleteProperty(load.cache, commandsPath) ? (load(commandsPath) as object) : {};
  return Reflect.get(commands, name);
};

load.cache[commandsPath] ??= Object.assign(new Module(commandsPath), { exports: new Proxy({}, { get }), loaded: true });

/**
 * The client of the package `redis`, without what the package adds for modules of a server. Its 400 commands, a file
 * each, are loaded when the first of them is used: all that the product sends is sent by `sendCommand`.
 */
export const {
  ErrorReply,
  RedisClient,
  RedisCluster,
}: Pick<typeof Redis, 'ErrorReply' | 'RedisClient' | 'RedisCluster'> = load('@redis/client');
