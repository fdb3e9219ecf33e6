package synth

// stroke is one movement of the pen: control points on a grid 100 wide and 140 high. With corners they are joined by
// straight lines, otherwise by a spline. A closed stroke's last point is moved onto the first.
type stroke struct {
	corners bool
	closed  bool
	points  [][2]int16
}

// maxControlPoints is the length of the longest stroke below.
const maxControlPoints = 12

func curve(points ...[2]int16) stroke { return stroke{points: points} }

func loop(points ...[2]int16) stroke { return stroke{closed: true, points: points} }

func straight(points ...[2]int16) stroke { return stroke{corners: true, points: points} }

type p = [2]int16

// glyphs holds the ways to write each digit.
var glyphs = [10][][]stroke{
	0: {
		{loop(p{50, 0}, p{12, 4}, p{0, 45}, p{0, 95}, p{15, 136}, p{50, 140}, p{85, 136}, p{100, 95}, p{100, 45}, p{88, 4}, p{50, 0})},
		{loop(p{58, 0}, p{15, 10}, p{2, 70}, p{10, 130}, p{45, 145}, p{90, 120}, p{98, 65}, p{85, 5}, p{58, 0})},
	},
	1: {
		{straight(p{50, 0}, p{50, 140})},
		{straight(p{20, 32}, p{55, 0}, p{55, 140})},
		{straight(p{25, 30}, p{52, 0}, p{52, 140}), straight(p{20, 140}, p{84, 140})},
	},
	2: {
		{curve(p{5, 35}, p{10, 0}, p{50, -5}, p{95, 0}, p{98, 50}, p{60, 85}, p{5, 138}), straight(p{5, 138}, p{100, 138})},
		{curve(p{8, 25}, p{40, -10}, p{95, 10}, p{90, 60}, p{40, 110}, p{5, 135}, p{10, 115}, p{45, 125}, p{98, 142})},
	},
	3: {
		{curve(p{8, 14}, p{40, -8}, p{95, 5}, p{90, 60}, p{38, 66}), curve(p{38, 66}, p{100, 66}, p{105, 125}, p{55, 150}, p{2, 122})},
		{straight(p{8, 2}, p{92, 2}, p{42, 58}), curve(p{42, 58}, p{98, 62}, p{108, 122}, p{55, 150}, p{2, 120})},
	},
	4: {
		{straight(p{70, 140}, p{70, 0}, p{0, 95}, p{100, 95})},
		{straight(p{15, 0}, p{8, 70}, p{92, 70}), straight(p{80, 0}, p{74, 140})},
		{curve(p{22, 5}, p{5, 40}, p{5, 82}, p{50, 76}, p{95, 68}), straight(p{84, 15}, p{78, 140})},
	},
	5: {
		{straight(p{92, 2}, p{20, 2}, p{12, 62}), curve(p{12, 62}, p{60, 42}, p{108, 70}, p{100, 125}, p{45, 150}, p{2, 125})},
		{straight(p{25, 5}, p{18, 65}), curve(p{18, 65}, p{70, 48}, p{105, 85}, p{88, 140}, p{35, 145}, p{2, 128}), straight(p{25, 5}, p{95, -2})},
	},
	6: {
		{curve(p{82, 4}, p{35, 15}, p{2, 65}, p{0, 115}, p{30, 145}, p{80, 145}, p{100, 110}, p{85, 72}, p{40, 68}, p{6, 100})},
		{curve(p{60, 0}, p{20, 40}, p{2, 90}, p{15, 140}, p{55, 148}, p{95, 130}, p{90, 82}, p{50, 75}, p{12, 112})},
	},
	7: {
		{straight(p{2, 4}, p{96, 4}, p{38, 140})},
		{straight(p{2, 20}, p{4, 4}, p{94, 4}), curve(p{94, 4}, p{60, 60}, p{45, 95}, p{42, 140})},
		{straight(p{2, 4}, p{96, 4}, p{38, 140}), straight(p{28, 72}, p{88, 72})},
	},
	8: {
		{loop(p{50, 64}, p{10, 50}, p{8, 8}, p{50, -4}, p{92, 8}, p{90, 50}, p{50, 64}), loop(p{50, 64}, p{0, 84}, p{2, 132}, p{50, 146}, p{98, 132}, p{100, 84}, p{50, 64})},
		{curve(p{90, 15}, p{50, -12}, p{5, 15}, p{20, 55}, p{85, 85}, p{100, 128}, p{50, 150}, p{0, 128}, p{15, 85}, p{75, 55}, p{90, 15})},
	},
	9: {
		{loop(p{94, 40}, p{85, 0}, p{35, -6}, p{0, 30}, p{18, 76}, p{70, 78}, p{94, 40}), straight(p{94, 40}, p{88, 140})},
		{loop(p{92, 36}, p{80, -2}, p{32, -4}, p{2, 34}, p{25, 78}, p{78, 70}, p{92, 36}), curve(p{92, 36}, p{98, 85}, p{85, 135}, p{45, 148}, p{12, 132})},
	},
}
