/**
 * The command that corrects a file of sequences without Kafka.
 *
 * <p>Input: one JSON object per line, one line per sequence.
 * <pre>
 * field                  needed            what
 * id                     yes               name of the sequence, unique in the file
 * mask                   yes               one 0 (context) or 1 (trained) per token
 * behavior_log_probs     by the ratio      log-prob of each token in the engine that sampled it
 * old_log_probs          by the ratio      in the learner's engine, at the version that sampled
 * proximal_log_probs     by the ratio      in the learner's engine, at the version the batch is formed at
 * current_log_probs      by the ratio      of the policy being updated
 * </pre>
 * All lists of a line have one element per token. A log-prob is a number from -350 to 0 at a
 * trained token; at a context token it may be null.
 * Other fields are refused, so that a misspelt one is not taken for an absent one; vectors the ratio does not need
 * are checked and not used.
 *
 * <p>Output: one JSON object per sequence that was corrected, in the order of the input, with {@code id}, {@code mask}
 * (0 where a token was rejected or was context), {@code rejected_tokens}, and {@code weights} if the correction makes
 * them (0 at context).
 *
 * <p>Under an algorithm the line also has {@code reward} and, for whose samples it is one, {@code group}; and what the stages
 * read: {@code reference_log_probs}, {@code teacher_log_probs}, {@code entropies}, {@code squared_probabilities}, {@code
 * values}, {@code token_rewards}, {@code versions}, {@code turns} and {@code forced}, one per token; {@code age_ms} and {@code
 * greedy_reward}, one each; {@code turn_rewards}, one per turn; {@code reward_components}, by name. What some line lacks is
 * not known of the batch. Output then is {@code id}, {@code mask}, {@code masked_tokens}, {@code masked_by} where no token is
 * left, {@code advantage}, {@code advantages} where tokens differ, and {@code weights}.
 *
 * <p>Every number that is written is finite: a metric that is not is printed and left out of the file. Input, output and
 * metrics are three files, and each is replaced whole or left as it was.
 *
 * <p>The file is one batch: metrics and batch normalisation are over every line that could be read.
 */
@NullMarked
package dev.millrace.cli.correct;

import org.jspecify.annotations.NullMarked;
