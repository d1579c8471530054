import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { PGlite } from '@electric-sql/pglite';
import express from 'express';
import { isoFromPg } from '../../src/lib/instants.ts';
import { type Keep, type RecordOptions, shortestRecords } from '../lib/shortest-record.ts';
import type { Statement } from './statements.ts';

/** What the bare server is told: where its rows are, and what it asks them. */
export interface BareOptions {
  port: number;
  /** A folder of PGlite, or the URL of a PostgreSQL. */
  cluster?: string;
  databaseUrl?: string;
  statements: Statement[];
  /** The page that the statements are of; 1 unless given. */
  page?: number;
  /** What answers: Express unless given. */
  frame?: 'express' | 'http';
  /** Where a record of each request goes; none is kept where this is missing. */
  records?: RecordOptions;
}

type Row = Record<string, string | null>;
type Run = (statement: Statement) => Promise<Row[]>;

interface PgModule {
  Pool: new (options: object) => { query(statement: Statement): Promise<{ rows: Row[] }> };
}

const POOL_SIZE = 10;
const TEXT_TYPES = [20, 1114, 1184];

/** Opens PGlite with the product's parameters, or a pool of pg of the product's size; both give times as text. */
async function openRows({ cluster, databaseUrl, frame }: BareOptions): Promise<Run> {
  const text = (value: string) => value;
  if (cluster !== undefined) {
    const db = await PGlite.create({
      dataDir: cluster,
      database: 'postgres',
      startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'],
      parsers: Object.fromEntries(TEXT_TYPES.map((type) => [type, text])),
    });
    return async ({ text: sql, values }) => (await db.query<Row>(sql, values)).rows;
  }
  const require = createRequire(import.meta.url);
  const { Pool } = require('pg') as PgModule;
  const { getTypeParser } = require('pg-types') as { getTypeParser(type: number, format: string): unknown };
  const types = {
    getTypeParser: (type: number, format: string) => (TEXT_TYPES.includes(type) ? text : getTypeParser(type, format)),
  };
  const options = '-c timezone=UTC';
  const pool = new Pool({ connectionString: databaseUrl, max: POOL_SIZE, options, types });
  // A bare handler of node:http prepares its statements as the product does; the Express route as it comes does not.
  return async ({ name, text: sql, values }) =>
    (await pool.query(frame === 'http' && name !== undefined ? { name, text: sql, values } : { text: sql, values }))
      .rows;
}

/**
 * Run as a process of its own: one route that asks what the product asks and gives the product's body, without token,
 * tenant or checks, of Express as it comes or of node:http; no audit, or a record of each request. Times are cut as the
 * product cuts them, since a `Date` would cost more.
 */
async function serve(options: BareOptions): Promise<void> {
  const run = await openRows(options);
  const keep = options.records && shortestRecords(options.records);
  const [count, page] = options.statements;
  if (!count || !page || options.statements.length !== 2) throw new Error('a page of accounts is two statements');
  const body = async () => {
    const counted = await run(count);
    const rows = await run(page);
    const data = rows.map((row) => ({
      ...row,
      created_at: isoFromPg(row.created_at ?? ''),
      updated_at: isoFromPg(row.updated_at ?? ''),
      deleted_at: row.deleted_at ? isoFromPg(row.deleted_at) : null,
    }));
    return { data, page: options.page ?? 1, per_page: 10, total: Number(counted[0]?.total) };
  };
  if (options.frame === 'http') serveHttp(options.port, body, keep);
  else serveExpress(options.port, body, keep);
  process.once('SIGTERM', () => process.exit());
}

function serveExpress(port: number, body: () => Promise<object>, keep: Keep | undefined): void {
  const app = express();
  app.get('/health', (_req, res) => {
    res.json({});
  });
  app.get('/v1/accounts', async (req, res) => {
    const startedTick = performance.now();
    const given = await body();
    if (!keep) return void res.json(given);
    const responseBody = JSON.stringify(given);
    // What `res.json` sends, by the text that the record has.
    keep({ req, startedTick, requestBody: '', responseBody }, () => res.type('json').send(responseBody));
  });
  app.listen(port, '127.0.0.1');
}

function serveHttp(port: number, body: () => Promise<object>, keep: Keep | undefined): void {
  const server = createServer(async (req, res) => {
    const startedTick = performance.now();
    const isPage = req.url !== '/health';
    const text = JSON.stringify(isPage ? await body() : {});
    const answer = () => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      res.end(text);
    };
    if (keep && isPage) keep({ req, startedTick, requestBody: '', responseBody: text }, answer);
    else answer();
  });
  server.listen(port, '127.0.0.1');
}

const [, , optionsPath] = process.argv;
if (optionsPath === undefined) throw new Error('usage: bare FILE');
await serve(JSON.parse(readFileSync(optionsPath, 'utf8')));
