import { once } from 'node:events';
import { createServer } from 'node:net';

const ATTEMPTS = 3;

/** Distinct TCP ports of 127.0.0.1 that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => server.listening || once(server, 'listening')));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP listener has no port');
    return address.port;
  });
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/**
 * Calls `start` with free ports. Another program may take a port between its choice and its use:
 * `start` is then called again with others, unless its port was prescribed.
 */
export async function onFreePorts<T>(
  count: number,
  prescribed: number | undefined,
  start: (ports: number[]) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await freePorts(count);
    if (prescribed !== undefined) ports[0] = prescribed;
    try {
      return await start(ports);
    } catch (error) {
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || prescribed !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
}
