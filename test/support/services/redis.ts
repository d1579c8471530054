import { mkdir } from 'node:fs/promises';
import { startChild } from './child.ts';
import { onFreePorts } from './ports.ts';
import { redisBinary } from './redis-binary.ts';

export interface RedisOptions {
  /** A folder of this server's own. */
  dataDir: string;
  /** A free port unless prescribed. */
  port?: number | undefined;
  /** Lines of its configuration, besides those of every one. */
  settings?: readonly string[] | undefined;
}

export interface RedisServer {
  url: string;
  pid: number;
  port: number;
  stop(): Promise<void>;
}

/** Starts Redis on 127.0.0.1 with 1,024 databases, in memory only: what it held is gone when it ends. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const { dataDir } = options;
  await mkdir(dataDir, { recursive: true });
  const command = await redisBinary();
  return onFreePorts(1, options.port, async ([port = 0]) => {
    const child = await startChild({
      name: 'Redis',
      command,
      args: ['-'],
      dataDir,
      input: configuration(port, options.settings),
      ready: /ready to accept connections/i,
      stopSignal: 'SIGTERM',
      abandonSignal: 'SIGKILL',
    });
    return { ...child, port, url: `redis://127.0.0.1:${port}` };
  });
}

function configuration(port: number, settings: readonly string[] = []): string {
  const common = [`port ${port}`, 'bind 127.0.0.1', 'databases 1024', 'save ""', 'appendonly no', 'daemonize no'];
  const lines = [...common, ...settings];
  return `${lines.join('\n')}\n`;
}
