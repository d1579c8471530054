import { pino } from 'pino';
import type { Log } from '../../../src/lib/log.ts';

/** A log as a process writes it, down to its lowest level, and its lines. */
export function writtenLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const log: Log = {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
  return { log, lines };
}
