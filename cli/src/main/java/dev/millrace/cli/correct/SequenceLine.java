package dev.millrace.cli.correct;

import java.util.Map;

/**
 * One validated input sequence.
 *
 * @param number line number in the file, from 1
 * @param logProbs the vectors of the line by policy, one element per token; 0 where the line has null
 */
record SequenceLine(int number, String id, byte[] mask, Map<String, float[]> logProbs) {}
