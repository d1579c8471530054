/** A start that cannot be for a reason outside of the configuration, such as a port in use. Exit 1. */
export class StartError extends Error {
  override name = 'StartError';
}
