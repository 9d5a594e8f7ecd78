package dev.millrace.corrections.objective;

/** The formula of an objective that treats every token alike. */
interface TokenRule {

    /**
     * Writes loss and dLoss/d current into {@code term}.
     *
     * @param current log-prob under the policy being differentiated
     * @param anchor log-prob under the policy it is compared with
     */
    void apply(double current, double anchor, double advantage, TokenTerm term);
}
