import { accessSync, constants } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { startChild } from './child.ts';
import { findOnPath } from './commands.ts';
import { onFreePorts } from './ports.ts';

/** The path of the system's Prometheus; throws where it is not on the PATH, or its promtool does not stand beside it. */
export function findPrometheus(): string {
  const found = findOnPath('prometheus');
  if (found === undefined) throw new Error('no prometheus is on the PATH; Debian: apt-get install prometheus');
  accessSync(promtoolOf(found), constants.X_OK);
  return found;
}

/** The promtool of a Prometheus: packages and archives put both into one folder. */
export function promtoolOf(prometheus: string): string {
  return join(dirname(prometheus), 'promtool');
}

interface PrometheusOptions {
  /** The path of the program. */
  command: string;
  /** A folder of this server's own. */
  dataDir: string;
  /** Its configuration, of which the rules are files of their own, by their paths in that folder. */
  config: object;
  files: Record<string, object>;
  /** How long a series is seen after its last scrape. */
  lookbackDelta: string;
}

/** Starts Prometheus on 127.0.0.1. */
export async function startPrometheus(options: PrometheusOptions): Promise<{ url: string; stop(): Promise<void> }> {
  const { command, dataDir, config, files, lookbackDelta } = options;
  await mkdir(dataDir, { recursive: true });
  // Its configuration is YAML, of which JSON is a part.
  for (const [path, content] of Object.entries({ ...files, 'prometheus.yaml': config })) {
    await writeFile(join(dataDir, path), JSON.stringify(content));
  }
  return onFreePorts(1, undefined, async ([port = 0]) => {
    const { stop } = await startChild({
      name: 'Prometheus',
      command,
      args: [
        '--config.file=prometheus.yaml',
        '--storage.tsdb.path=data',
        `--web.listen-address=127.0.0.1:${port}`,
        `--query.lookback-delta=${lookbackDelta}`,
      ],
      dataDir,
      ready: /Server is ready to receive web requests/,
      stopSignal: 'SIGTERM',
      abandonSignal: 'SIGKILL',
    });
    return { url: `http://127.0.0.1:${port}`, stop };
  });
}
