import type * as http from 'node:http';

/**
 * What servers use of `node:http`. An import of that module evaluates all that it exports, with its client of WebSockets,
 * for which Node loads the whole of its own undici: more than twice the time of the rest of it.
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
export type ServerResponse = http.ServerResponse;
