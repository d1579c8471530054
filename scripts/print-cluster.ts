import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { NEW_CLUSTER } from '../src/platform/embedded/cluster.ts';
import { clusterOrigin, newClusterArchive, readOrigin } from './new-cluster.ts';

// Writes the files of a new embedded cluster, which are committed: a first start makes its database of them. One that is
// of the same PGlite and the same migrations is kept, since no two have the same bytes.
const originPath = join(NEW_CLUSTER, '../cluster.json');
const origin = clusterOrigin();
if (!isDeepStrictEqual(readOrigin(originPath), origin)) {
  writeFileSync(NEW_CLUSTER, await newClusterArchive());
  writeFileSync(originPath, `${JSON.stringify(origin, null, 2)}\n`);
}
