/**
 * How long a test waits for a state before it is said not to come. A deadline ends what hangs and judges no speed: the
 * machine may have ten times as much to do as it can.
 */
export const PATIENCE_MS = 120_000;

/** How long a test or a hook may take: several such waits. */
export const TEST_DEADLINE_MS = 5 * PATIENCE_MS;
