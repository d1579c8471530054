import { type LockedPackage, lockedPackages, readManifest, resolved } from './lockfile.ts';

interface Component {
  type: 'library' | 'application';
  'bom-ref': string;
  name: string;
  version: string;
  purl: string;
  licenses: ({ license: { id: string } } | { expression: string })[];
  hashes?: { alg: 'SHA-512'; content: string }[];
}

export interface Sbom {
  bomFormat: 'CycloneDX';
  specVersion: '1.6';
  version: 1;
  metadata: { lifecycles: { phase: 'pre-build' }[]; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/**
 * What the image has of packages, as CycloneDX 1.6. It depends only on the lockfile, so that equal lockfiles give equal
 * text. (`npm sbom --omit dev` leaves out what a package for development needs as well.)
 */
export function sbomOf(root: string): Sbom {
  const manifest = readManifest(root);
  const all = lockedPackages(root);
  const byPath = new Map(all.map((each) => [each.path, each]));
  const production = all.filter(({ isProduction }) => isProduction);
  const product = componentOf('application', { ...manifest, licence: manifest.license });
  const links = new Map([
    [product['bom-ref'], refs(byPath, '', { ...manifest.dependencies, ...byPath.get('console')?.dependencies })],
  ]);
  for (const each of production) {
    const { path, dependencies, optionalDependencies, peerDependencies } = each;
    const ref = purl(each);
    const needed = refs(byPath, path, { ...dependencies, ...optionalDependencies, ...peerDependencies });
    links.set(ref, new Set([...(links.get(ref) ?? []), ...needed]));
  }
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { lifecycles: [{ phase: 'pre-build' }], component: product },
    // One that lies in several places is one component.
    components: [...new Map(production.map((each) => [purl(each), componentOf('library', each)])).values()],
    dependencies: Array.from(links, ([ref, needed]) => ({ ref, dependsOn: [...needed].sort() })),
  };
}

type Described = Pick<LockedPackage, 'name' | 'version' | 'licence'> & { integrity?: string };

function componentOf(type: Component['type'], { name, version, licence, integrity }: Described): Component {
  const ref = purl({ name, version });
  const licenses = licence.includes(' ') ? [{ expression: licence }] : [{ license: { id: licence } }];
  const digest = /^sha512-(\S+)$/.exec(integrity ?? '')?.[1];
  const hashes = digest && [{ alg: 'SHA-512' as const, content: Buffer.from(digest, 'base64').toString('hex') }];
  return { type, 'bom-ref': ref, name, version, purl: ref, licenses, ...(hashes && { hashes }) };
}

function refs(
  byPath: ReadonlyMap<string, LockedPackage>,
  path: string,
  names: Readonly<Record<string, string>>,
): Set<string> {
  const found = Object.keys(names).map((name) => resolved(byPath, path, name));
  return new Set(found.flatMap((each) => (each?.isProduction ? [purl(each)] : [])));
}

/** The package URL (its specification, type npm): the scope's @ is escaped. */
function purl({ name, version }: Pick<LockedPackage, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;
}
