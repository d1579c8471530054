/** A statement about built files: their names, and the sources of the build (in-toto 1, SLSA provenance 1). */
export interface Provenance {
  _type: 'https://in-toto.io/Statement/v1';
  subject: { name: string; digest: { sha256: string } }[];
  predicateType: 'https://slsa.dev/provenance/v1';
  predicate: {
    buildDefinition: {
      buildType: string;
      externalParameters: { version: string };
      resolvedDependencies: { uri: string; digest: Record<string, string> }[];
    };
    runDetails: { builder: { id: string } };
  };
}

interface ProvenanceParts {
  version: string;
  commit: string;
  /** SHA-256 of `package-lock.json`, which names every package by its digest. */
  lockfile: string;
  /** The files of the release with their SHA-256. */
  files: Readonly<Record<string, string>>;
}

/**
 * Returns the files, commit and packages of a release. It depends only on these, so that equal releases give equal
 * text.
 */
export function provenanceOf({ version, commit, lockfile, files }: ProvenanceParts): Provenance {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: Object.entries(files).map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: '.ci/release-files',
        externalParameters: { version },
        resolvedDependencies: [
          { uri: 'git+commit', digest: { gitCommit: commit } },
          { uri: 'package-lock.json', digest: { sha256: lockfile } },
        ],
      },
      runDetails: { builder: { id: '.ci/release-files' } },
    },
  };
}
