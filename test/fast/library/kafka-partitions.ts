import { Partitioners } from 'kafkajs';

/** Chooses partitions as kafkajs does. */
export const partitionOf = Partitioners.DefaultPartitioner();
