import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { portcullis } from '../cli/in-process.ts';
import { ROOT } from '../start/process.ts';

/** What the program itself is run for; other commands are run in this process, which has loaded them once. */
const BY_PROGRAM = ['--help', 'config', 'start'];

const SOCKET = 'commands.sock';

/** Puts `bin/portcullis` into a folder, and runs there what it is told until disposed of. */
export async function furnishCommands(folder: string): Promise<AsyncDisposable> {
  await mkdir(join(folder, 'bin'));
  await symlink(join(ROOT, 'bin/portcullis'), join(folder, 'program'));
  const program = join(folder, 'bin/portcullis');
  await writeFile(program, scriptOf(folder));
  await chmod(program, 0o755);
  const server = createServer(async (request, response) => {
    const call = await text(request);
    await run(folder, call).catch((error: Error) => writeFile(join(call, 'err'), `${error.stack}`));
    response.end();
  });
  await new Promise<void>((listening) => server.listen(join(folder, SOCKET), listening));
  return server;
}

function scriptOf(folder: string): string {
  return `#!/bin/bash
case "$1" in ${BY_PROGRAM.join(' | ')}) exec ${join(folder, 'program')} "$@" ;; esac
call=$(mktemp -d ${join(folder, 'call-XXXXXX')})
env -0 >"$call/env"
printf '%s\\0' "$@" >"$call/args"
cat >"$call/input"
curl -sS --unix-socket ${join(folder, SOCKET)} -d "$call" http://commands/
cat "$call/err" >&2
cat "$call/out"
exit "$(cat "$call/code")"
`;
}

async function run(folder: string, call: string): Promise<void> {
  const [args, variables] = await Promise.all([listed(join(call, 'args')), listed(join(call, 'env'))]);
  const [line = ''] = (await readFile(join(call, 'input'), 'utf8')).split('\n');
  const env = Object.fromEntries(variables.map((variable) => /^([^=]*)=(.*)$/s.exec(variable)?.slice(1) ?? []));
  const { code, out, err } = await portcullis(
    args.map((arg) => (existsSync(join(folder, arg)) ? join(folder, arg) : arg)),
    { DATA_DIR: join(folder, '.data'), ...env },
    line || undefined,
  );
  const told = { out, err, code: `${code}` };
  await Promise.all(Object.entries(told).map(([name, text]) => writeFile(join(call, name), text)));
}

async function listed(file: string): Promise<string[]> {
  return (await readFile(file, 'utf8')).split('\0').slice(0, -1);
}
