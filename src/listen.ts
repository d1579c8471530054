import type { Server } from 'node:http';
import { StartError } from './start-error.ts';

interface Address {
  host: string;
  port: number;
  /** The variable that names the port, for the message. */
  variable: string;
}

/**
 * Listens, and gives the port that it got.
 * @throws StartError when the port is taken or may not be used.
 */
export async function listen(server: Server, { host, port, variable }: Address): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, host, resolve);
  try {
    await promise;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE')
      throw new StartError(`port ${port} of ${host} is in use: stop its owner, or set ${variable}`);
    throw new StartError(`cannot listen on ${host}:${port} (${String(code)}): set HOST or ${variable}`);
  }
  server.off('error', reject);
  const bound = server.address();
  return typeof bound === 'object' && bound ? bound.port : port;
}

/** Lets requests in flight finish, closes idle connections, and cuts what is left at the deadline. */
export async function closeGracefully(server: Server, deadlineMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await promise;
  clearTimeout(timer);
}
