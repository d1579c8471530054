import { existsSync } from 'node:fs';
import { bindSecrets, embeddedClusterDir, instanceOfSecrets, notWhole, PARTS } from '../../platform/config/secrets.ts';
import { clusterIdentity, ensureCluster } from '../../platform/embedded/cluster.ts';
import { readDemo } from './demo.ts';

/**
 * Creates what an embedded run's `DATA_DIR` lacks after a first start that did not finish, in the order secrets,
 * database, demo. The folder must be locked. The system identifier of the database serves as the id of the
 * installation: it is written into the secrets once, and into the demo at each start.
 * @throws StartError when the folder has lost a part or contains one of another installation; nothing is overwritten
 * then.
 */
export async function prepareDataDir(dataDir: string): Promise<void> {
  const secrets = instanceOfSecrets(dataDir);
  const demo = readDemo(dataDir)?.instance_id;
  const known = secrets ?? demo;
  if (known !== undefined && !existsSync(embeddedClusterDir(dataDir))) {
    throw notWhole(dataDir, `${PARTS.cluster} is missing`);
  }
  await ensureCluster(dataDir);
  const database = clusterIdentity(dataDir, known);
  const mismatch = mismatchedPart(secrets, demo, database);
  if (mismatch !== undefined) throw notWhole(dataDir, `${mismatch} belongs to another installation`);
  if (secrets === undefined) bindSecrets(dataDir, database);
}

/**
 * Returns the part whose id differs from the other two; undefined if all match. The secrets have an id before the demo
 * does.
 */
function mismatchedPart(secrets: string | undefined, demo: string | undefined, database: string): string | undefined {
  if (demo === undefined) return secrets === undefined || secrets === database ? undefined : PARTS.cluster;
  if (demo === database) return secrets === database ? undefined : PARTS.secrets;
  return demo === secrets ? PARTS.cluster : PARTS.demo;
}
