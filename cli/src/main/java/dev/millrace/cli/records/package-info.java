/**
 * Records that another system dumped: one JSON object per line, one line per sequence that was trained on; or the rows of Parquet files,
 * with the same fields as columns.
 *
 * <pre>
 * field                  needed   what
 * step                   yes      the version at which the step started that trained on it, a whole number from 0; lines come in its order
 * mask                   yes      one 0 (context) or 1 (trained) per response token
 * behavior_log_probs     yes      log-prob of each token in the engine that sampled it
 * proximal_log_probs     yes      in the trainer's engine, at the weights from which the step started
 * reward                 yes      of the sequence
 * group                  no       the sequences of one prompt have one; without it a sequence is a group of its own
 * id                     no       unique among all lines; without it the place of the line
 * version, versions      no       the version that sampled it, or one per token; without them the step's
 * old_log_probs          no       in the trainer's engine, at the version that sampled
 * advantage, advantages  no       as the trainer had it, one or one per token; compared with what the algorithm makes
 * prompt_tokens          no       token ids
 * response_tokens        no       token ids, one per element of mask
 * temperature            no       at which it was sampled; 1 where it is not given
 * finish_reason          no       a word, such as STOP or LENGTH
 * </pre>
 *
 * <p>And, as for {@code millrace correct --algorithm}: {@code reference_log_probs}, {@code teacher_log_probs}, {@code entropies},
 * {@code squared_probabilities}, {@code values}, {@code token_rewards} and {@code turns}, one per token; {@code turn_rewards}, one per
 * turn; {@code age_ms}, {@code greedy_reward}, {@code reward_components}. Any other field is refused.
 */
@NullMarked
package dev.millrace.cli.records;

import org.jspecify.annotations.NullMarked;
