import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** Taps both bodies for the audit record, which is written before the last byte of the answer. */
export function captureStage(onEnd: (exchange: Exchange, aborted: boolean, kept: () => void) => void): Stage {
  return function capture(exchange: Exchange): void {
    exchange.capture.install((aborted, kept) => onEnd(exchange, aborted, kept));
  };
}
