import type { Exchange } from '../gateway/exchange.ts';

/**
 * Tells a client that waits for leave to send its body to go on (RFC 9110 section 10.1.1). HTTP/1.0 knows no interim
 * answers: its client would take it for the whole answer.
 */
export function giveLeaveToSend({ req, res }: Exchange): void {
  if (req.httpVersion !== '1.0' && /^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue();
}
