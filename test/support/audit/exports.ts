import { spawn } from 'node:child_process';
import { createHash, createPublicKey, sign } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { AuditSeals } from '../../../src/audit/seals.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import { blocksOf } from '../docs/markdown.ts';
import { SEAL_KEY, sealsIn } from '../harness/audit-seals.ts';
import { temporaryFolder } from '../services/folders.ts';
import { serviceAddress } from '../services/real.ts';

const PAGE = 'docs/operations/audit-export.md';
const SCRIPT_FILE = 'verify.py';
const KEY_FILE = 'audit-key.pub';

export const SIGNING_KEY = SEAL_KEY.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Seals in a test's database, and copies them to a file, as `AUDIT_CHECKPOINTS` does. */
export function sealsTo(db: Db, file: string): AuditSeals {
  return sealsIn(db, { sink: async (seal) => appendFileSync(file, `${JSON.stringify(seal)}\n`) });
}

interface Verdict {
  code: number | null;
  said: string;
}

/** Verifies an export as its page says, by the script of the page. @returns what it printed, and its exit code. */
export async function verifiedByScript(folder: string, checkpoints: string, scratch: string): Promise<Verdict> {
  writeScript(scratch);
  const python = spawn(serviceAddress('python'), [SCRIPT_FILE, folder, checkpoints, KEY_FILE], { cwd: scratch });
  const ended = new Promise<number | null>((resolve) => python.once('close', resolve));
  const [out, err] = await Promise.all([text(python.stdout), text(python.stderr)]);
  return { code: await ended, said: out + err };
}

/** Puts the script of the page and the key into a folder. */
function writeScript(scratch: string): void {
  const script = blocksOf(PAGE).find(({ lang }) => lang === 'python')?.text ?? '';
  const key = createPublicKey(SEAL_KEY).export({ type: 'spki', format: 'pem' });
  writeFileSync(join(scratch, SCRIPT_FILE), script);
  writeFileSync(join(scratch, KEY_FILE), key);
}

/** Runs a script with the arguments of each line, and answers with its exit code and what it printed. */
const RUNNER = `
import contextlib, io, json, runpy, sys, traceback
for line in sys.stdin:
    sys.argv, said, code = json.loads(line), io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(said): runpy.run_path(sys.argv[0])
    except SystemExit as ended: code = 1; said.write(str(ended.code))
    except BaseException: code = 1; said.write(traceback.format_exc())
    print(json.dumps({'code': code, 'said': said.getvalue()}), flush=True)
`;

/** Verifies exports as `verifiedByScript` does, all in one Python: loading its cryptography takes far longer than the script. */
export async function startVerifier(): Promise<
  AsyncDisposable & { verify(folder: string, checkpoints: string): Promise<Verdict> }
> {
  const scratch = await temporaryFolder();
  writeScript(scratch);
  const python = spawn(serviceAddress('python'), ['-c', RUNNER], { cwd: scratch, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(python, 'close');
  const answers = createInterface(python.stdout)[Symbol.asyncIterator]();
  return {
    async verify(folder, checkpoints) {
      python.stdin.write(`${JSON.stringify([SCRIPT_FILE, folder, checkpoints, KEY_FILE])}\n`);
      return JSON.parse((await answers.next()).value ?? 'null');
    },
    async [Symbol.asyncDispose]() {
      python.stdin.end();
      await ended;
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** Copies an export with its files changed, and signs it anew by the key if it is stolen. */
export function tampered(from: string, to: string, changes: Changes, isResigned: boolean): void {
  cpSync(from, to, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(from, 'manifest.json'), 'utf8'));
  for (const [name, change] of Object.entries(changes)) {
    const lines = readFileSync(join(from, name), 'utf8').split(/(?<=\n)/);
    const changed = change(lines).join('');
    writeFileSync(join(to, name), changed);
    manifest.files[name] = { bytes: changed.length, sha256: createHash('sha256').update(changed).digest('hex') };
  }
  if (!isResigned) return;
  const stated = JSON.stringify(manifest);
  writeFileSync(join(to, 'manifest.json'), stated);
  writeFileSync(join(to, 'manifest.sig'), sign(null, Buffer.from(stated), SEAL_KEY));
}

export type Changes = Record<string, (lines: string[]) => string[]>;
