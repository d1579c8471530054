import { ConfigError } from '../../../src/platform/config/config.ts';

/** Returns what is wrong with a configuration that is read; nothing if it is valid. */
export function configFaults(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}
