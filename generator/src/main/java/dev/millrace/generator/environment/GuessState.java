package dev.millrace.generator.environment;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** State of the game as text {@code number/turns}: {@code 07/5} is the number 7 in two digits, with five guesses. */
record GuessState(int number, int digits, int turns) {
    static final int MAX_DIGITS = 4;
    static final int MAX_TURNS = 32;
    private static final Pattern TEXT = Pattern.compile("([0-9]{1," + MAX_DIGITS + "})/([0-9]{1,2})");

    static GuessState parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("the state must be number/turns, such as 07/5: '" + text + "'");
        }
        int turns = Integer.parseInt(matcher.group(2));
        if (turns < 1 || turns > MAX_TURNS) {
            throw new IllegalArgumentException("turns must be 1 to " + MAX_TURNS + ": " + turns + " in '" + text + "'");
        }
        return new GuessState(
                Integer.parseInt(matcher.group(1)), matcher.group(1).length(), turns);
    }

    String text() {
        StringBuilder text = new StringBuilder(Integer.toString(number));
        while (text.length() < digits) {
            text.insert(0, '0');
        }
        return text.append('/').append(turns).toString();
    }
}
