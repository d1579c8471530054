/** Leaves the resolution of imports to Node. */
export function resolveFast(): void {
  // Node's own way needs nothing.
}
