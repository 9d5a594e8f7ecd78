package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Guess a number: the policy writes digits, the environment answers {@code <higher>} (the number is higher than the
 * guess), {@code <lower>} or {@code <found>}, for as many guesses as the request allows.
 *
 * <p>The reward is 1 if the number was found, given to that turn, and 0 otherwise. A token that is no digit ends the
 * game.
 */
public record Guess() implements Environment {
    private static final StepResult HIGHER = StepResult.insert(Symbols.HIGHER);
    private static final StepResult LOWER = StepResult.insert(Symbols.LOWER);
    private static final StepResult FOUND = StepResult.insertAndEnd(Symbols.FOUND);

    @Override
    public String name() {
        return "guess";
    }

    @Override
    public int endToken() {
        return -1; // giving up is never worth more than another guess
    }

    @Override
    public Episode begin(String state) {
        return new Game(GuessState.parse(state));
    }

    private static final class Game implements Episode {
        private final GuessState state;

        Game(GuessState state) {
            this.state = state;
        }

        @Override
        public StepResult afterToken(Transcript response) {
            int last = response.length() - 1;
            if (Symbols.digitOf(response.token(last)) < 0) {
                return StepResult.END;
            }
            int turnTokens = state.digits() + 1; // a guess and the answer to it
            if (response.length() % turnTokens != state.digits()) {
                return StepResult.GO_ON;
            }
            int guess = numberAt(response, response.length() - state.digits());
            if (guess == state.number()) {
                return FOUND;
            }
            if (response.length() / turnTokens + 1 == state.turns()) {
                return StepResult.END;
            }
            return guess < state.number() ? HIGHER : LOWER;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            int guesses = 0;
            boolean found = false;
            for (int at = 0;
                    !found && guesses < state.turns() && at + state.digits() <= response.length();
                    at += state.digits() + 1) {
                int guess = numberAt(response, at);
                if (guess < 0) {
                    break;
                }
                guesses++;
                found = guess == state.number();
            }
            return new VerifiedReward(
                    found ? 1.0 : 0.0, Map.of("guesses", (double) guesses), perTurn(response, found), List.of());
        }

        /** The last turn has it all: the policy continues until it has found the number. */
        private static List<Double> perTurn(Transcript response, boolean found) {
            List<Double> perTurn = new ArrayList<>();
            for (int t = 0; t < response.length(); t++) {
                if (response.byPolicy(t) && (t == 0 || !response.byPolicy(t - 1))) {
                    perTurn.add(0.0);
                }
            }
            if (found) {
                perTurn.set(perTurn.size() - 1, 1.0);
            }
            return perTurn;
        }

        /** The guess that begins at a position, or -1 if one of its tokens is no digit of the policy's. */
        private int numberAt(Transcript response, int start) {
            int number = 0;
            for (int i = start; i < start + state.digits(); i++) {
                int digit = Symbols.digitOf(response.token(i));
                if (digit < 0 || !response.byPolicy(i)) {
                    return -1;
                }
                number = 10 * number + digit;
            }
            return number;
        }
    }
}
