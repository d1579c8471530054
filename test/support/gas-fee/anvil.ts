import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';

/** A real node of the Ethereum kind, with a chain of its own. */
export interface Anvil extends AsyncDisposable {
  url: string;
  /** The result of one call. @throws Error with the node's message where it refuses. */
  rpc(method: string, ...params: unknown[]): Promise<unknown>;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const LISTENING = /Listening on (?<host>[\d.]+:\d+)/;

/** Anvil's program; undefined where its package has none for this platform. */
function program(): string | undefined {
  const require = createRequire(import.meta.url);
  try {
    const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch]}/package.json`;
    const path = join(dirname(require.resolve(name)), 'bin/anvil');
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** Why there is none; undefined where there is one. */
export function whyNoAnvil(): string | undefined {
  return program() === undefined ? reason() : undefined;
}

function reason(): string {
  return `@foundry-rs/anvil has no program for ${process.platform}-${process.arch}`;
}

/** Starts a node on a free port, which is ended when it is disposed of. */
export async function startAnvil(...args: readonly string[]): Promise<Anvil> {
  const path = program();
  if (path === undefined) throw new Error(reason());
  const child = spawn(path, ['--port', '0', '--threads', '1', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const url = `http://${await listeningAt(child.stdout)}`;
  return {
    url,
    rpc: (method, ...params) => call(url, method, params),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** It writes a line for each block and call, all of which are read: a full pipe would stop it. */
async function listeningAt(stdout: Readable): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  let host: string | undefined;
  stdout.setEncoding('utf8').on('data', (chunk: string) => {
    if (host !== undefined) return;
    text += chunk;
    host = LISTENING.exec(text)?.groups?.host;
    if (host !== undefined) resolve(host);
  });
  stdout.once('end', () => reject(new Error(`anvil ended: ${text}`)));
  return await promise;
}

/** What a node answers to one call. */
export async function call(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
  if (error) throw new Error(error.message);
  return result;
}
