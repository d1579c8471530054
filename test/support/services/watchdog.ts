import { spawn } from 'node:child_process';

/**
 * Reads one line from a pipe that only the starting process holds open. The line comes when the server has ended in
 * order. The end of the pipe comes when the starting process has died, however it died, SIGKILL included.
 * The folder above goes too if nothing else is left in it and the dead process made it (temporaryFolder).
 */
const SCRIPT = `
read -r _ && exit 0
kill -s CONT "$1" 2>/dev/null
kill -s "$2" "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -s KILL "$1" 2>/dev/null
rm -rf "$3" || { sleep 1; rm -rf "$3"; }
parent=$(dirname "$3")
case "\${parent##*/}" in portcullis-test-*) rmdir "$parent" 2>/dev/null ;; esac
`;

export interface WatchOptions {
  pid: number;
  /** How the server is ended when its parent is gone and nobody needs its data any more. */
  signal: NodeJS.Signals;
  dataDir: string;
}

/**
 * Watches over a server from a process of its own: when this process dies, the server is ended and `dataDir` removed.
 * Returns the function that dismisses the watchdog, to be called once the server has ended.
 */
export function watch(options: WatchOptions): () => void {
  const args = ['-c', SCRIPT, 'portcullis-watchdog', `${options.pid}`, options.signal.slice(3), options.dataDir];
  const watchdog = spawn('sh', args, { cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watchdog.unref();
  // A watchdog that was itself killed cannot be told anything, and need not be.
  watchdog.on('error', () => undefined);
  watchdog.stdin.on('error', () => undefined);
  return () => {
    watchdog.stdin.end('ended\n');
  };
}
