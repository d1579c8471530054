import type { Log } from '../lib/log.ts';
import type { Tracer } from '../lib/tracing.ts';

/** The same log, whose lines carry the trace that they belong to. */
export function tracedLog(log: Log, tracer: Tracer): Log {
  const traced = (fields: object): object => {
    const trace_id = tracer.activeTraceId;
    return trace_id === undefined ? fields : { trace_id, ...fields };
  };
  return {
    debug: (fields, message) => log.debug(traced(fields), message),
    info: (fields, message) => log.info(traced(fields), message),
    warn: (fields, message) => log.warn(traced(fields), message),
    error: (fields, message) => log.error(traced(fields), message),
  };
}
