import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';

/** A process of clients, which answers each command by a line of JSON; disposing of it ends it. */
export class ClientProcess<Told> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: Interface;

  constructor(program: 'idle-clients.ts' | 'subscriber-clients.ts', ...args: readonly string[]) {
    const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
  }

  async tell(command: string): Promise<Told> {
    const answered = once(this.#lines, 'line');
    this.#child.stdin?.write(`${command}\n`);
    return JSON.parse(String((await answered)[0]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await ended;
  }
}
