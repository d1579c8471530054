import { existsSync } from 'node:fs';
import { embeddedClusterDir, notWhole, PARTS } from '../../platform/config/data-dir.ts';
import { bindSecrets, instanceOfSecrets } from '../../platform/config/secrets.ts';
import { clusterIdentity, ensureCluster } from '../../platform/embedded/cluster.ts';
import { readDemo } from './demo-file.ts';

/**
 * Makes what a `DATA_DIR` lacks of an embedded instance that never finished its first start, in the order secrets,
 * database, demo; the folder is locked. The system identifier of the database is the id of the instance: it is written
 * into the secrets, once, and with each start into the demo.
 * @throws StartError where the folder has lost a part, or has one of another instance: nothing is made over it.
 */
export async function prepareDataDir(dataDir: string): Promise<void> {
  const secrets = instanceOfSecrets(dataDir);
  const demo = readDemo(dataDir)?.instance_id;
  const known = secrets ?? demo;
  if (known !== undefined && !existsSync(embeddedClusterDir(dataDir))) {
    throw notWhole(dataDir, `${PARTS.cluster} is gone`);
  }
  await ensureCluster(dataDir);
  const database = clusterIdentity(dataDir, known);
  const strange = strangePart({ secrets, demo, database });
  if (strange !== undefined) throw notWhole(dataDir, `${strange} is of another instance`);
  if (secrets === undefined) bindSecrets(dataDir, database);
}

interface Ids {
  secrets: string | undefined;
  demo: string | undefined;
  database: string;
}

/** Of three the one that differs. Secrets have an id before a demo has one. */
function strangePart({ secrets, demo, database }: Ids): string | undefined {
  if (demo === undefined) return secrets === undefined || secrets === database ? undefined : PARTS.cluster;
  if (demo === database) return secrets === database ? undefined : PARTS.secrets;
  return demo === secrets ? PARTS.cluster : PARTS.demo;
}
