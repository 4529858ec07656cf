package agents

// A generated name combines one word from each list, in CamelCase.
var (
	adjectives = []string{
		"Amber", "Ancient", "Autumn", "Azure", "Blue", "Bold", "Brave", "Bright", "Bronze", "Calm",
		"Clever", "Cobalt", "Copper", "Coral", "Crimson", "Crystal", "Daring", "Deep", "Distant",
		"Eager", "Early", "Emerald", "Fair", "Fast", "Fern", "Fond", "Frosty", "Gentle", "Gilded",
		"Glad", "Golden", "Grand", "Gray", "Green", "Happy", "Hazel", "Hidden", "Honest", "Indigo",
		"Iron", "Ivory", "Jade", "Jolly", "Keen", "Kind", "Late", "Lavender", "Light", "Lilac",
		"Lively", "Lone", "Loyal", "Lucky", "Lunar", "Maple", "Marble", "Mellow", "Merry", "Misty",
		"Modest", "Navy", "Nimble", "Noble", "Northern", "Olive", "Opal", "Orange", "Pale",
		"Patient", "Pearl", "Pink", "Plain", "Polar", "Proud", "Purple", "Quick", "Quiet", "Rapid",
		"Red", "Rosy", "Ruby", "Russet", "Rustic", "Sandy", "Scarlet", "Serene", "Sharp", "Silent",
		"Silver", "Smooth", "Snowy", "Solar", "Solid", "Southern", "Spring", "Steady", "Steel",
		"Still", "Stone", "Stormy", "Summer", "Sunny", "Swift", "Teal", "Tidy", "Topaz", "True",
		"Velvet", "Violet", "Warm", "White", "Wild", "Winter", "Wise", "Witty", "Yellow",
	}
	nouns = []string{
		"Acorn", "Alder", "Anchor", "Aspen", "Badger", "Bay", "Beacon", "Bear", "Birch", "Bison",
		"Bridge", "Brook", "Canyon", "Castle", "Cedar", "Cliff", "Cloud", "Comet", "Cove", "Crane",
		"Creek", "Crow", "Deer", "Delta", "Dove", "Dune", "Eagle", "Elk", "Elm", "Falcon", "Field",
		"Finch", "Fjord", "Forest", "Fox", "Garden", "Glacier", "Glade", "Grove", "Gull", "Harbor",
		"Hare", "Hawk", "Heron", "Hill", "Island", "Jay", "Kestrel", "Lagoon", "Lake", "Lark",
		"Ledge", "Linden", "Lion", "Lynx", "Magpie", "Marsh", "Marten", "Meadow", "Mesa", "Mill",
		"Moon", "Moose", "Moss", "Mountain", "Oak", "Oasis", "Ocean", "Orchard", "Osprey", "Otter",
		"Owl", "Peak", "Pebble", "Pine", "Plain", "Pond", "Prairie", "Quail", "Rain", "Raven",
		"Reef", "Ridge", "River", "Robin", "Sail", "Seal", "Shore", "Sky", "Sparrow", "Spring",
		"Star", "Stone", "Stream", "Summit", "Swan", "Thicket", "Thistle", "Tiger", "Tower",
		"Trail", "Trout", "Tundra", "Valley", "Vale", "Wave", "Whale", "Willow", "Wind", "Wolf",
		"Wood", "Wren",
	}
)
