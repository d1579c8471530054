import type * as http from 'node:http';

/**
 * What servers use of `node:http`. An import of that module evaluates all that it exports, with its client of
 * WebSockets, for which Node loads its entire bundled undici, which takes twice as long as all else.
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
export type ServerResponse = http.ServerResponse;
