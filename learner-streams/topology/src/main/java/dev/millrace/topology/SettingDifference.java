package dev.millrace.topology;

/**
 * A setting in which two texts differ.
 *
 * @param key in the current form
 * @param recorded its value in the run; {@value #ABSENT} if there it has none
 * @param here its value now; {@value #ABSENT} if it has none
 */
public record SettingDifference(String key, String recorded, String here) {
    /** Of a key without a value. */
    public static final String ABSENT = "not set";

    @Override
    public String toString() {
        return key + " was " + recorded + " and is " + here + " here";
    }
}
