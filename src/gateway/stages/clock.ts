import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** Records when the request began. */
export function clockStage(nowMs: () => number): Stage {
  return function clock(exchange: Exchange): void {
    exchange.startedAtMs = nowMs();
    exchange.startedTick = performance.now();
  };
}
