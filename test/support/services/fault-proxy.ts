import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const MAX_HELD_BYTES = 8 * 1024 * 1024;

/**
 * What happens to the bytes between a client and its server: they pass; nothing passes and nothing is open (`cut`); nothing
 * passes while everything stays open (`frozen`); what the server says stays away (`mute`).
 */
export type FaultMode = 'passing' | 'cut' | 'frozen' | 'mute';

/** A way to a server on 127.0.0.1 that faults can be put on. */
export interface FaultProxy extends AsyncDisposable {
  readonly port: number;
  /** The port of the server, which may start after the proxy and come back elsewhere. */
  targetPort: number;
  /** A URL of the server by way of the proxy. */
  urlOf(target: string): string;
  set(mode: FaultMode): void;
  /** How long each piece of bytes is held back, in either direction; in ms. */
  delayMs: number;
}

/**
 * Starts such a way, at 127.0.0.1 unless told otherwise. What was held while frozen passes afterwards; what a muted
 * server said never does.
 */
export async function faultProxy(targetPort = 0, host = '127.0.0.1'): Promise<FaultProxy> {
  const open = new Set<Socket>();
  const waiting = new Set<() => void>();
  let mode: FaultMode = 'passing';

  const proxy: FaultProxy = {
    port: 0,
    targetPort,
    delayMs: 0,
    urlOf(target) {
      const url = new URL(target);
      url.host = `127.0.0.1:${proxy.port}`;
      return url.href;
    },
    set(next) {
      mode = next;
      if (next === 'cut') for (const socket of open) socket.destroy();
      if (next === 'frozen') return;
      for (const goOn of waiting) goOn();
      waiting.clear();
    },
    async [Symbol.asyncDispose]() {
      proxy.set('cut');
      await new Promise((resolve) => server.close(resolve));
    },
  };

  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    if (mode === 'cut') return void client.resetAndDestroy();
    const beyond = connect({ host: '127.0.0.1', port: proxy.targetPort });
    for (const [end, other] of [
      [client, beyond],
      [beyond, client],
    ] as const) {
      open.add(end);
      end.setNoDelay(true);
      end.on('error', () => end.destroy());
      end.once('close', () => {
        open.delete(end);
        other.destroy();
      });
      pump(end, other, () => end === beyond && mode === 'mute');
    }
  });

  /** Hands on piece by piece, in order; with the end of one side, once all has passed, ends the other. */
  function pump(from: Socket, to: Socket, isMuted: () => boolean): void {
    let passed = Promise.resolve();
    let held = 0;
    from.on('data', (piece) => {
      const dueAtMs = performance.now() + proxy.delayMs;
      held += piece.length;
      if (held > MAX_HELD_BYTES) from.pause();
      passed = passed.then(async () => {
        const leftMs = dueAtMs - performance.now();
        if (leftMs > 0) await delay(leftMs);
        while (mode === 'frozen') await new Promise<void>((resolve) => waiting.add(resolve));
        if (!isMuted() && !to.write(piece))
          await Promise.race([once(to, 'drain'), once(to, 'close')]).catch(() => undefined);
        held -= piece.length;
        if (held <= MAX_HELD_BYTES) from.resume();
      });
    });
    from.once('end', () => void passed.then(() => to.end()));
  }

  server.listen(0, host);
  await once(server, 'listening');
  return Object.assign(proxy, { port: (server.address() as AddressInfo).port });
}
