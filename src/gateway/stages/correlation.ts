import { invalidRequest } from '../../errors/app-error.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Exchange } from '../exchange.ts';

/** The longest correlation id that is forwarded. */
export const MAX_CORRELATION_ID_BYTES = 1024;

/** Forwards the caller's `X-Correlation-ID` as received, or gives one, and echoes it on the response. */
export function correlation(exchange: Exchange): void {
  const given = exchange.req.headers['x-correlation-id'];
  const received = Array.isArray(given) ? given.join(', ') : given;
  const tooLong = received !== undefined && Buffer.byteLength(received, 'latin1') > MAX_CORRELATION_ID_BYTES;
  exchange.correlationId = received && !tooLong ? received : uuidV7();
  exchange.req.headers['x-correlation-id'] = exchange.correlationId;
  exchange.res.setHeader('X-Correlation-ID', exchange.correlationId);
  if (tooLong)
    throw invalidRequest([{ path: 'X-Correlation-ID', message: `at most ${MAX_CORRELATION_ID_BYTES} bytes` }]);
}
