/** A statement about files that were built: what they are and of what (in-toto 1, SLSA provenance 1). */
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

/** Tells which files a release has and of which commit and packages they are: of these alone, so that the same ones give the same text. */
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
