/** Loads modules as Node resolves them. */
export function loading<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  return load();
}
