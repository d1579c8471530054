/** A structured log: JSON lines in production, readable lines on a terminal. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Returns a log that passes the fields of each line through `change`. */
export function withFields(log: Log, change: (fields: object) => object): Log {
  return {
    debug: (fields, message) => log.debug(change(fields), message),
    info: (fields, message) => log.info(change(fields), message),
    warn: (fields, message) => log.warn(change(fields), message),
    error: (fields, message) => log.error(change(fields), message),
  };
}

/** A log that discards everything. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
