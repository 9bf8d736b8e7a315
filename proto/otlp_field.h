/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers of OTLP profiles 1.10 (otlp_profiles.proto), for the encoder, which works by hand.
 */
#pragma once

enum otlp_field_request { OTLP_REQUEST_RESOURCE_PROFILES = 1, OTLP_REQUEST_DICTIONARY = 2 };

enum otlp_field_resource_profiles {
	OTLP_RESOURCE_PROFILES_RESOURCE = 1,
	OTLP_RESOURCE_PROFILES_SCOPE_PROFILES = 2,
};

enum otlp_field_resource { OTLP_RESOURCE_ATTRIBUTES = 1 };

enum otlp_field_scope_profiles { OTLP_SCOPE_PROFILES_SCOPE = 1, OTLP_SCOPE_PROFILES_PROFILES = 2 };

enum otlp_field_scope { OTLP_SCOPE_NAME = 1, OTLP_SCOPE_VERSION = 2, OTLP_SCOPE_ATTRIBUTES = 3 };

enum otlp_field_dictionary {
	OTLP_DICTIONARY_MAPPINGS = 1,
	OTLP_DICTIONARY_LOCATIONS = 2,
	OTLP_DICTIONARY_FUNCTIONS = 3,
	OTLP_DICTIONARY_LINKS = 4,
	OTLP_DICTIONARY_STRINGS = 5,
	OTLP_DICTIONARY_ATTRIBUTES = 6,
	OTLP_DICTIONARY_STACKS = 7,
};

enum otlp_field_profile {
	OTLP_PROFILE_SAMPLE_TYPE = 1,
	OTLP_PROFILE_SAMPLES = 2,
	OTLP_PROFILE_TIME_UNIX_NANO = 3,
	OTLP_PROFILE_DURATION_NANO = 4,
	OTLP_PROFILE_PERIOD_TYPE = 5,
	OTLP_PROFILE_PERIOD = 6,
	OTLP_PROFILE_ATTRIBUTES = 11,
};

enum otlp_field_value_type { OTLP_VALUE_TYPE_TYPE = 1, OTLP_VALUE_TYPE_UNIT = 2 };

enum otlp_field_sample {
	OTLP_SAMPLE_STACK = 1,
	OTLP_SAMPLE_ATTRIBUTES = 2,
	OTLP_SAMPLE_VALUES = 4,
};

enum otlp_field_stack { OTLP_STACK_LOCATIONS = 1 };

enum otlp_field_location {
	OTLP_LOCATION_MAPPING = 1,
	OTLP_LOCATION_ADDRESS = 2,
	OTLP_LOCATION_LINES = 3,
	OTLP_LOCATION_ATTRIBUTES = 4,
};

enum otlp_field_line { OTLP_LINE_FUNCTION = 1, OTLP_LINE_LINE = 2, OTLP_LINE_COLUMN = 3 };

enum otlp_field_function {
	OTLP_FUNCTION_NAME = 1,
	OTLP_FUNCTION_SYSTEM_NAME = 2,
	OTLP_FUNCTION_FILENAME = 3,
	OTLP_FUNCTION_START_LINE = 4,
};

enum otlp_field_mapping {
	OTLP_MAPPING_START = 1,
	OTLP_MAPPING_LIMIT = 2,
	OTLP_MAPPING_FILE_OFFSET = 3,
	OTLP_MAPPING_FILENAME = 4,
	OTLP_MAPPING_ATTRIBUTES = 5,
};

enum otlp_field_key_value { OTLP_KEY_VALUE_KEY = 1, OTLP_KEY_VALUE_VALUE = 2 };

enum otlp_field_attribute {
	OTLP_ATTRIBUTE_KEY = 1,
	OTLP_ATTRIBUTE_VALUE = 2,
	OTLP_ATTRIBUTE_UNIT = 3,
};

enum otlp_field_any_value {
	OTLP_ANY_STRING = 1,
	OTLP_ANY_BOOL = 2,
	OTLP_ANY_INT = 3,
	OTLP_ANY_ARRAY = 5,
};

enum otlp_field_array { OTLP_ARRAY_VALUES = 1 };
