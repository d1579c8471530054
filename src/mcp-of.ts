import type { Context } from './context.ts';
import { cursorKeyOf } from './graphql-of.ts';
import { createMcpServer, type McpServer } from './mcp/server.ts';

/** MCP over the parts of this instance. */
export function mcpOf(context: Context): McpServer {
  const { config, secrets, database, directory, throttle, guards, publicUrl, telemetry, log, nowMs } = context;
  const { transactions, userMigrations, migrationFiles, userErasure, gasFees, idempotentAnswers } = context;
  return createMcpServer({
    db: database.db,
    directory,
    throttle,
    guards,
    corsOrigins: config.corsOrigins,
    publicUrl: () => publicUrl.value,
    transactions,
    userMigrations,
    migrationFiles,
    userErasure,
    gasFees,
    idempotentAnswers,
    cursorKey: cursorKeyOf(secrets),
    production: config.production,
    outcomes: telemetry.toolOutcomes,
    log,
    nowMs,
  });
}
