/** Told that the log of a node goes up to `seq`, a decimal string. Must not throw. */
export type WakeUpListener = (nodeId: string, seq: string) => void;

/**
 * Says to every process that a node's event log has grown. A hint: it may be lost, repeated, late or merged into a
 * later one, and whoever needs the events reads the log.
 */
export interface WakeUps {
  /** Call it after the commit. Never throws, never waits. */
  notify(nodeId: string, seq: string): void;
  /** Hears notifications of all processes, this one included. @returns the function that ends it. */
  listen(listener: WakeUpListener): () => void;
  stop(): Promise<void>;
}
