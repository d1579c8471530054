import { z } from 'zod';
import { route } from '../../api/rest/route.ts';
import { getGraphql } from '../../api/rest/system.rest.ts';
import { callerOf } from '../../gateway/exchange/exchange.ts';
import { sendPieces } from '../../gateway/exchange/responses.ts';
import { uuidInput } from '../../lib/input.ts';
import { orNotFound } from '../../platform/errors.ts';
import { outsideRequest } from '../../platform/held-memory.ts';
import type { AuditExports } from './audit-records.service.ts';

const downloadPath = z.object({ id: uuidInput(), key: uuidInput() });

/** Sends the archive of an export of the caller's tenant. Each path works once (docs/contract.md, D8-18). */
export const downloadAuditExport = route({
  method: 'GET',
  path: `${getGraphql.path}/audit-exports/{id}/{key}`,
  handlers: ({ auditExports }: { auditExports: AuditExports }) => [
    async (req, res) => {
      const data = orNotFound(downloadPath.safeParse(req.params).data);
      const { nodeId } = callerOf(req);
      // It may take longer than a statement of a request, and read more than one may hold.
      await outsideRequest(async () => {
        const archive = await auditExports.download(nodeId, data.id, data.key);
        res.setHeader('Content-Type', 'application/zip');
        res.setHeader('Content-Disposition', `attachment; filename="audit-export-${data.id}.zip"`);
        res.setHeader('Cache-Control', 'no-store');
        res.setHeader('X-Content-Type-Options', 'nosniff');
        await sendPieces(res, archive);
      });
    },
  ],
});
