import { uuidV7 } from '../../lib/uuid-v7.ts';
import { invalidRequest } from '../../platform/errors.ts';
import type { IncomingRequest } from './exchange.ts';

/** The longest correlation id that is forwarded. */
export const MAX_CORRELATION_ID_BYTES = 1024;

/**
 * Forwards the caller's `X-Correlation-ID` as received, or creates one, and echoes it on the response.
 * @throws AppError 400 for one that is too long; the request gets one of its own all the same.
 */
export function correlation(request: IncomingRequest): void {
  const { headers } = request.req;
  const given = headers['x-correlation-id'];
  const received = Array.isArray(given) ? given.join(', ') : given;
  const tooLong = received !== undefined && Buffer.byteLength(received, 'latin1') > MAX_CORRELATION_ID_BYTES;
  request.correlationId = received && !tooLong ? received : uuidV7();
  headers['x-correlation-id'] = request.correlationId;
  request.res.setHeader('X-Correlation-ID', request.correlationId);
  if (tooLong)
    throw invalidRequest([{ path: 'X-Correlation-ID', message: `at most ${MAX_CORRELATION_ID_BYTES} bytes` }]);
}
